#include "data/hdf5/hdf5_dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "core/error.hpp"
#include "core/numbers.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kCompactBytes = 4 << 10;
constexpr std::size_t kMaxChunkBytes = 256 << 20;  // the most that a reader allocates
constexpr std::uint64_t kMostInflated = 1100;      // bytes that a deflated byte can become

constexpr std::array kElementTypes = {ElementType::i8,  ElementType::i16, ElementType::i32,
                                      ElementType::i64, ElementType::u8,  ElementType::u16,
                                      ElementType::f32, ElementType::f64};

Hdf5Id space_of(const std::vector<std::int64_t>& shape) TPUDIST_REQUIRES(hdf5_mutex()) {
  const std::vector<hsize_t> sizes(shape.begin(), shape.end());
  return Hdf5Id(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), H5Sclose);
}

std::vector<std::int64_t> shape_of(const Hdf5Id& dataset) TPUDIST_REQUIRES(hdf5_mutex()) {
  const Hdf5Id space(H5Dget_space(dataset.get()), H5Sclose);
  const int axes = std::max(0, H5Sget_simple_extent_ndims(space.get()));
  std::vector<hsize_t> sizes(static_cast<std::size_t>(axes));
  H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
  return {sizes.begin(), sizes.end()};
}

Hdf5Id creation_properties() TPUDIST_REQUIRES(hdf5_mutex()) {
  Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);  // equal data give equal files
  return properties;
}

Hdf5Id create_dataset(const Hdf5Id& group, const std::string& name, hid_t type,
                      const std::vector<std::int64_t>& shape, const Hdf5Id& properties,
                      std::string_view where) TPUDIST_REQUIRES(hdf5_mutex()) {
  const Hdf5Id space = space_of(shape);  // closing it before the check would clear HDF5's reason
  Hdf5Id id(H5Dcreate2(group.get(), name.c_str(), type, space.get(), H5P_DEFAULT, properties.get(),
                       H5P_DEFAULT),
            H5Dclose);
  check_hdf5(id.get(), "create", where);
  return id;
}

Hdf5Id open_dataset(const Hdf5Id& group, const std::string& name, std::string_view where)
    TPUDIST_REQUIRES(hdf5_mutex()) {
  require_own(group, name, where);
  Hdf5Id id(H5Dopen2(group.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (id.get() >= 0) {
    const Hdf5Id properties(H5Dget_create_plist(id.get()), H5Pclose);
    if (H5Pget_layout(properties.get()) != H5D_VIRTUAL &&
        H5Pget_external_count(properties.get()) <= 0)
      return id;
    throw DataError(fmt::format("{}: its elements lie in other files; store them here", where));
  }
  throw_if_unreadable(where);
  throw DataError(fmt::format("{}: the dataset is missing", where));
}

// UTF-8 of this many bytes.
Hdf5Id text_type(std::size_t bytes) TPUDIST_REQUIRES(hdf5_mutex()) {
  Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), bytes);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  return type;
}

// Rows in memory and in the file.
struct SelectedRows {
  Hdf5Id memory, file;
};

SelectedRows select_rows(std::vector<std::int64_t> shape, std::int64_t first, std::int64_t count)
    TPUDIST_REQUIRES(hdf5_mutex()) {
  Hdf5Id file = space_of(shape);
  shape[0] = count;
  const std::vector<hsize_t> size(shape.begin(), shape.end());
  std::vector<hsize_t> start(shape.size(), 0);
  start[0] = static_cast<hsize_t>(first);
  H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr);
  return {space_of(shape), std::move(file)};
}

// Offset of a chunk's first element.
std::vector<hsize_t> chunk_offset(std::size_t axes, std::int64_t first_row) {
  std::vector<hsize_t> offset(axes, 0);
  offset[0] = static_cast<hsize_t>(first_row);
  return offset;
}

struct Free {
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
  void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
};

libdeflate_compressor* compressor(int level) {
  thread_local std::unique_ptr<libdeflate_compressor, Free> mine;
  thread_local int mine_level = -1;
  if (level != mine_level) {
    mine.reset(libdeflate_alloc_compressor(level));
    if (!mine) throw std::bad_alloc();
    mine_level = level;
  }
  return mine.get();
}

libdeflate_decompressor* decompressor() {
  thread_local std::unique_ptr<libdeflate_decompressor, Free> mine(libdeflate_alloc_decompressor());
  if (!mine) throw std::bad_alloc();
  return mine.get();
}

}  // namespace

void Hdf5Dataset::set_sizes(std::size_t chunk_bytes) {
  row_bytes_ = element_bytes(type_);
  for (std::size_t axis = 1; axis < shape_.size(); ++axis) {
    const auto bytes = checked_mul(row_bytes_, static_cast<std::uint64_t>(shape_[axis]));
    if (!bytes) throw DataError(where_ + ": impossible shape");
    row_bytes_ = *bytes;
  }
  const auto total = checked_mul(row_bytes_, static_cast<std::uint64_t>(shape_[0]));
  if (!total) throw DataError(where_ + ": impossible shape");
  chunked_ = chunk_bytes != kPlain && *total > kCompactBytes;
  const std::size_t fitting = chunk_bytes / std::max<std::size_t>(row_bytes_, 1);
  chunk_rows_ =
      chunked_ ? std::min<std::int64_t>(rows(), static_cast<std::int64_t>(fitting)) : rows();
  chunk_rows_ = std::max<std::int64_t>(chunk_rows_, 1);
}

Hdf5Dataset Hdf5Dataset::create(const Hdf5Id& group, const std::string& name, ElementType type,
                                std::vector<std::int64_t> shape, std::string_view where,
                                std::size_t chunk_bytes) {
  Hdf5Dataset dataset;
  dataset.where_ = fmt::format("{}/{}", where, name);
  dataset.type_ = type;
  dataset.shape_ = std::move(shape);
  dataset.set_sizes(chunk_bytes);

  const Hdf5Lock lock;
  const Hdf5Id properties = creation_properties();
  if (dataset.chunked_) {
    std::vector<hsize_t> chunk(dataset.shape_.begin(), dataset.shape_.end());
    chunk[0] = static_cast<hsize_t>(dataset.chunk_rows_);
    H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
    H5Pset_deflate(properties.get(), kDeflateLevel);
  } else if (chunk_bytes != kPlain) {
    H5Pset_layout(properties.get(), H5D_COMPACT);
  }
  dataset.id_ =
      create_dataset(group, name, hdf5_type(type), dataset.shape_, properties, dataset.where_);
  return dataset;
}

Hdf5Dataset Hdf5Dataset::open(const Hdf5Id& group, const std::string& name,
                              std::string_view where) {
  Hdf5Dataset dataset;
  dataset.where_ = fmt::format("{}/{}", where, name);
  const auto refuse = [&](std::string_view what) {
    throw DataError(fmt::format("{}: {}", dataset.where_, what));
  };
  const Hdf5Lock lock;
  dataset.id_ = open_dataset(group, name, dataset.where_);
  const Hdf5Id type(H5Dget_type(dataset.id_.get()), H5Tclose);
  const auto known = std::ranges::find_if(
      kElementTypes, [&](ElementType t) { return H5Tequal(type.get(), hdf5_type(t)) > 0; });
  if (known == kElementTypes.end()) refuse("has an unknown element type");
  dataset.type_ = *known;

  dataset.shape_ = shape_of(dataset.id_);
  if (dataset.shape_.empty()) refuse("has no axis");
  dataset.set_sizes();

  const Hdf5Id properties(H5Dget_create_plist(dataset.id_.get()), H5Pclose);
  dataset.chunked_ = H5Pget_layout(properties.get()) == H5D_CHUNKED;
  if (!dataset.chunked_) {
    dataset.chunk_rows_ = std::max<std::int64_t>(dataset.rows(), 1);
  } else {
    std::vector<hsize_t> chunk(dataset.shape_.size());
    H5Pget_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
    if (!std::equal(chunk.begin() + 1, chunk.end(), dataset.shape_.begin() + 1)) {
      refuse("has chunks that are not whole rows");
    }
    dataset.chunk_rows_ = static_cast<std::int64_t>(chunk[0]);
    const bool deflated = H5Pget_nfilters(properties.get()) == 1 &&
                          H5Pget_filter_by_id2(properties.get(), H5Z_FILTER_DEFLATE, nullptr,
                                               nullptr, nullptr, 0, nullptr, nullptr) >= 0;
    if (!deflated) refuse("has filters other than deflate");
    const auto bytes = checked_mul(chunk[0], dataset.row_bytes_);
    if (!bytes || *bytes > kMaxChunkBytes) refuse("has chunks that are too large");
  }
  // The size of the file bounds the memory.
  const std::uint64_t bytes = dataset.row_bytes_ * static_cast<std::uint64_t>(dataset.rows());
  const std::uint64_t stored = H5Dget_storage_size(dataset.id_.get());  // 0 if unreadable
  if (bytes / (dataset.chunked_ ? kMostInflated : 1) > stored) {
    throw_if_unreadable(dataset.where_);
    refuse("has fewer bytes in the file than its elements take; the file is damaged");
  }
  return dataset;
}

Hdf5Dataset Hdf5Dataset::open(const Hdf5Id& group, const std::string& name, ElementType type,
                              const std::vector<std::int64_t>& shape, std::string_view where) {
  Hdf5Dataset dataset = open(group, name, where);
  check_array(dataset, type, shape);
  return dataset;
}

void Hdf5Dataset::require_type(ElementType type) const {
  if (type != type_) throw std::out_of_range(where_ + ": of another type");
}

std::int64_t Hdf5Dataset::rows_of_chunk(std::int64_t chunk) const {
  return std::min(chunk_rows_, rows() - chunk * chunk_rows_);
}

std::vector<std::byte> Hdf5Dataset::deflated(std::int64_t chunk, std::span<const std::byte> rows,
                                             bool prove) const {
  if (rows.size() != static_cast<std::size_t>(rows_of_chunk(chunk)) * row_bytes_) {
    throw std::out_of_range(where_ + ": write_chunks");
  }
  // HDF5 stores the last chunk in full, with zeros beyond the last row.
  const std::size_t full = static_cast<std::size_t>(chunk_rows_) * row_bytes_;
  std::vector<std::byte> padded;
  if (rows.size() < full) {
    padded.assign(full, std::byte{0});
    std::memcpy(padded.data(), rows.data(), rows.size());
    rows = padded;
  }
  std::vector<std::byte> stored = deflate_chunk(rows);
  if (prove) {
    std::vector<std::byte> again(full);
    if (!inflate_chunk(stored, again) || std::memcmp(again.data(), rows.data(), full) != 0) {
      throw Error(ErrorKind::failed, where_ + ": a deflated chunk did not come back as it was");
    }
  }
  return stored;
}

void Hdf5Dataset::store(std::int64_t chunk, std::span<const std::byte> stored) {
  const Hdf5Lock lock;
  const auto offset = chunk_offset(shape_.size(), chunk * chunk_rows_);
  check_hdf5(H5Dwrite_chunk(id_.get(), H5P_DEFAULT, 0, offset.data(), stored.size(), stored.data()),
             "write", where_);
}

void Hdf5Dataset::write_chunks(std::int64_t first_chunk,
                               std::span<const std::span<const std::byte>> chunks, ThreadPool& pool,
                               bool prove) {
  const auto count = std::ssize(chunks);
  if (first_chunk < 0 || first_chunk + count > this->chunks()) {
    throw std::out_of_range(where_ + ": write_chunks");
  }
  if (!chunked_) {
    if (count > 0) write_rows(0, chunks[0]);
    return;
  }
  std::vector<std::vector<std::byte>> stored(chunks.size());
  pool.parallel_for(count, [&](std::int64_t i) {
    const auto k = static_cast<std::size_t>(i);
    stored[k] = deflated(first_chunk + i, chunks[k], prove);
  });
  for (std::int64_t i = 0; i < count; ++i) {
    store(first_chunk + i, stored[i]);
  }
}

void Hdf5Dataset::throw_damaged(std::int64_t chunk, std::string_view what) const {
  throw DataError(fmt::format("{}: chunk {} (rows {} to {}) {}: the file is damaged; convert again",
                              where_, chunk, chunk * chunk_rows_,
                              chunk * chunk_rows_ + rows_of_chunk(chunk) - 1, what));
}

// The bytes of a chunk in the file, valid until the thread's next call. Takes about a tenth of the
// time of inflating them.
std::span<const std::byte> Hdf5Dataset::stored_chunk(std::int64_t chunk) const {
  thread_local std::vector<std::byte> stored;
  const auto offset = chunk_offset(shape_.size(), chunk * chunk_rows_);
  const Hdf5Lock lock;
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(id_.get(), offset.data(), &bytes) < 0 || bytes == 0 ||
      bytes > kMaxChunkBytes) {
    throw_if_unreadable(where_);
    throw_damaged(chunk, "is missing");
  }
  stored.resize(bytes);
  // HDF5 1.10 gives no filter mask for datasets of a single chunk; the writer never skips the
  // filter.
  std::uint32_t skipped_filters = 0;
  if (H5Dread_chunk(id_.get(), H5P_DEFAULT, offset.data(), &skipped_filters, stored.data()) < 0) {
    throw_if_unreadable(where_);
    throw_damaged(chunk, "cannot be read");
  }
  return stored;
}

void Hdf5Dataset::read_chunk(std::int64_t chunk, std::span<std::byte> rows) const {
  if (chunk < 0 || chunk >= chunks() ||
      rows.size() != static_cast<std::size_t>(rows_of_chunk(chunk)) * row_bytes_) {
    throw std::out_of_range(where_ + ": read_chunk");
  }
  if (!chunked_) return read_rows(0, this->rows(), rows);
  const auto inflate = [&](std::span<std::byte> raw) {
    const auto stored = stored_chunk(chunk);
    if (inflate_chunk(stored, raw)) return;
    throw_damaged(
        chunk, fmt::format("of {} bytes does not inflate to {} bytes", stored.size(), raw.size()));
  };
  const std::size_t full = static_cast<std::size_t>(chunk_rows_) * row_bytes_;
  if (rows.size() == full) return inflate(rows);
  thread_local std::vector<std::byte> padded;  // the last chunk is stored in full
  padded.resize(full);
  inflate(padded);
  std::memcpy(rows.data(), padded.data(), rows.size());
}

void Hdf5Dataset::write_rows(std::int64_t first, std::span<const std::byte> rows) {
  const auto count = static_cast<std::int64_t>(rows.size() / std::max<std::size_t>(row_bytes_, 1));
  if (chunked_ || first < 0 || count > this->rows() - first ||
      rows.size() != static_cast<std::size_t>(count) * row_bytes_) {
    throw std::out_of_range(where_ + ": write_rows");
  }
  if (rows.empty()) return;
  const Hdf5Lock lock;
  const SelectedRows selected = select_rows(shape_, first, count);
  check_hdf5(H5Dwrite(id_.get(), hdf5_type(type_), selected.memory.get(), selected.file.get(),
                      H5P_DEFAULT, rows.data()),
             "write", where_);
}

void Hdf5Dataset::write_all(std::span<const std::byte> rows, ThreadPool& pool) {
  if (rows.size() != static_cast<std::size_t>(this->rows()) * row_bytes_) {
    throw std::out_of_range(where_ + ": write_all");
  }
  const std::size_t step = static_cast<std::size_t>(chunk_rows_) * row_bytes_;
  std::vector<std::span<const std::byte>> batch;
  for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
    const std::size_t bytes = static_cast<std::size_t>(rows_of_chunk(chunk)) * row_bytes_;
    batch.push_back(rows.subspan(static_cast<std::size_t>(chunk) * step, bytes));
    if (batch.size() < static_cast<std::size_t>(pool.threads()) && chunk + 1 < chunks()) continue;
    write_chunks(chunk + 1 - std::ssize(batch), batch, pool);
    batch.clear();
  }
}

std::uint64_t Hdf5Dataset::stored_bytes() const {
  const Hdf5Lock lock;
  return H5Dget_storage_size(id_.get());
}

void Hdf5Dataset::read_rows(std::int64_t first, std::int64_t count,
                            std::span<std::byte> out) const {
  if (first < 0 || count < 0 || count > rows() - first ||
      out.size() != static_cast<std::size_t>(count) * row_bytes_) {
    throw std::out_of_range(where_ + ": read_rows");
  }
  if (!chunked_) {
    if (out.empty()) return;
    const Hdf5Lock lock;
    const SelectedRows selected = select_rows(shape_, first, count);
    if (H5Dread(id_.get(), hdf5_type(type_), selected.memory.get(), selected.file.get(),
                H5P_DEFAULT, out.data()) < 0) {
      throw_if_unreadable(where_);
      throw DataError(fmt::format("{} cannot be read: the file is damaged", where_));
    }
    return;
  }
  thread_local std::vector<std::byte> part;
  for (std::int64_t row = first; row < first + count;) {
    const std::int64_t chunk = row / chunk_rows_, begin = chunk * chunk_rows_;
    const std::int64_t end = std::min(begin + rows_of_chunk(chunk), first + count);
    const auto target = out.subspan(static_cast<std::size_t>(row - first) * row_bytes_,
                                    static_cast<std::size_t>(end - row) * row_bytes_);
    if (row == begin && end == begin + rows_of_chunk(chunk)) {
      read_chunk(chunk, target);
    } else {
      part.resize(static_cast<std::size_t>(rows_of_chunk(chunk)) * row_bytes_);
      read_chunk(chunk, part);
      std::memcpy(target.data(), part.data() + static_cast<std::size_t>(row - begin) * row_bytes_,
                  target.size());
    }
    row = end;
  }
}

void check_array(const Hdf5Dataset& dataset, ElementType type,
                 std::span<const std::int64_t> shape) {
  const bool same = std::ranges::equal(
      dataset.shape(), shape,
      [](std::int64_t has, std::int64_t must) { return must == -1 || has == must; });
  if (dataset.type() == type && same) return;
  throw DataError(fmt::format("{}: is {} [{}] but must be {} [{}]; the file is damaged",
                              dataset.where(), element_name(dataset.type()),
                              fmt::join(dataset.shape(), ", "), element_name(type),
                              fmt::join(shape, ", ")));
}

void write_texts(const Hdf5Id& group, const std::string& name, std::span<const std::string> texts,
                 std::string_view where) {
  const Hdf5Lock lock;
  const std::string at = fmt::format("{}/{}", where, name);
  std::size_t bytes = 1;
  for (const std::string& text : texts) bytes = std::max(bytes, text.size());
  std::vector<char> padded(bytes * texts.size(), 0);
  for (std::size_t i = 0; i < texts.size(); ++i)
    std::memcpy(padded.data() + i * bytes, texts[i].data(), texts[i].size());
  const Hdf5Id type = text_type(bytes);
  const Hdf5Id dataset =
      create_dataset(group, name, type.get(), {std::ssize(texts)}, creation_properties(), at);
  if (texts.empty()) return;
  check_hdf5(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()),
             "write", at);
}

std::vector<std::string> read_texts(const Hdf5Id& group, const std::string& name,
                                    std::int64_t count, std::string_view where) {
  const Hdf5Lock lock;
  const std::string at = fmt::format("{}/{}", where, name);
  const Hdf5Id dataset = open_dataset(group, name, at);
  const Hdf5Id stored(H5Dget_type(dataset.get()), H5Tclose);
  if (H5Tget_class(stored.get()) != H5T_STRING || H5Tis_variable_str(stored.get()) != 0 ||
      shape_of(dataset) != std::vector{count}) {
    throw DataError(fmt::format("{} does not hold {} texts of one length", at, count));
  }
  if (count == 0) return {};
  const std::size_t bytes = H5Tget_size(stored.get());
  std::vector<char> padded(bytes * static_cast<std::size_t>(count));
  check_hdf5_read(
      H5Dread(dataset.get(), stored.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()),
      "its texts", at);
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < count; ++i) {
    const char* begin = padded.data() + static_cast<std::size_t>(i) * bytes;
    texts.emplace_back(begin, std::find(begin, begin + bytes, 0));
  }
  return texts;
}

std::vector<std::byte> deflate_chunk(std::span<const std::byte> raw, int level) {
  libdeflate_compressor* const c = compressor(level);
  std::vector<std::byte> stored(libdeflate_zlib_compress_bound(c, raw.size()));
  stored.resize(libdeflate_zlib_compress(c, raw.data(), raw.size(), stored.data(), stored.size()));
  return stored;
}

bool inflate_chunk(std::span<const std::byte> stored, std::span<std::byte> raw) {
  std::size_t used = 0;
  const libdeflate_result result = libdeflate_zlib_decompress_ex(
      decompressor(), stored.data(), stored.size(), raw.data(), raw.size(), &used, nullptr);
  return result == LIBDEFLATE_SUCCESS && used == stored.size();
}

}  // namespace tpudist
