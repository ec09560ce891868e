#include "data/hdf5/plain_dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "core/error.hpp"

namespace tpudist {
namespace {

std::string place(std::string_view where, const std::string& name) {
  return fmt::format("{}/{}", where, name);
}

Hdf5Id space_of(const std::vector<std::int64_t>& shape) {
  const std::vector<hsize_t> sizes(shape.begin(), shape.end());
  return Hdf5Id(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), H5Sclose);
}

std::vector<std::int64_t> shape_of(const Hdf5Id& dataset) {
  const Hdf5Id space(H5Dget_space(dataset.get()), H5Sclose);
  const int axes = std::max(0, H5Sget_simple_extent_ndims(space.get()));
  std::vector<hsize_t> sizes(static_cast<std::size_t>(axes));
  H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
  return {sizes.begin(), sizes.end()};
}

Hdf5Id open_dataset(const Hdf5Id& group, const std::string& name, std::string_view where) {
  Hdf5Id id(H5Dopen2(group.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (id.get() < 0) {
    throw_if_unreadable(place(where, name));
    throw DataError(fmt::format("{} is missing", place(where, name)));
  }
  return id;
}

Hdf5Id create_dataset(const Hdf5Id& group, const std::string& name, hid_t type,
                      const std::vector<std::int64_t>& shape, std::string_view where) {
  const Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);  // equal data give equal files
  Hdf5Id id(H5Dcreate2(group.get(), name.c_str(), type, space_of(shape).get(), H5P_DEFAULT,
                       properties.get(), H5P_DEFAULT),
            H5Dclose);
  check_hdf5(id.get(), "create", place(where, name));
  return id;
}

// UTF-8 of this many bytes.
Hdf5Id text_type(std::size_t bytes) {
  Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), bytes);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  return type;
}

}  // namespace

PlainDataset PlainDataset::create(const Hdf5Id& group, const std::string& name, ElementType type,
                                  std::vector<std::int64_t> shape, std::string_view where) {
  const Hdf5Lock lock;
  PlainDataset dataset;
  dataset.where_ = place(where, name);
  dataset.type_ = type;
  dataset.shape_ = std::move(shape);
  dataset.id_ = create_dataset(group, name, hdf5_type(type), dataset.shape_, where);
  return dataset;
}

PlainDataset PlainDataset::open(const Hdf5Id& group, const std::string& name, ElementType type,
                                std::string_view where) {
  const Hdf5Lock lock;
  PlainDataset dataset;
  dataset.where_ = place(where, name);
  dataset.type_ = type;
  dataset.id_ = open_dataset(group, name, where);
  dataset.shape_ = shape_of(dataset.id_);
  const Hdf5Id found(H5Dget_type(dataset.id_.get()), H5Tclose);
  if (H5Tequal(found.get(), hdf5_type(type)) <= 0) {
    throw DataError(fmt::format("{} is not of type {}", dataset.where_, element_name(type)));
  }
  if (dataset.shape_.empty()) throw DataError(dataset.where_ + " has no axis");
  return dataset;
}

PlainDataset PlainDataset::open(const Hdf5Id& group, const std::string& name, ElementType type,
                                std::vector<std::int64_t> shape, std::string_view where) {
  PlainDataset dataset = open(group, name, type, where);
  const bool same = std::ranges::equal(
      dataset.shape_, shape,
      [](std::int64_t is, std::int64_t should) { return should == -1 || is == should; });
  if (!same) {
    throw DataError(fmt::format("{} has the shape [{}], not [{}]", dataset.where_,
                                fmt::join(dataset.shape_, ", "), fmt::join(shape, ", ")));
  }
  return dataset;
}

std::int64_t PlainDataset::row_elements() const {
  return std::accumulate(shape_.begin() + 1, shape_.end(), std::int64_t{1}, std::multiplies<>());
}

Hdf5Id PlainDataset::select(std::int64_t first, std::size_t elements, ElementType type) const {
  const auto width = static_cast<std::size_t>(row_elements());
  const std::int64_t count = width == 0 ? 0 : static_cast<std::int64_t>(elements / width);
  if (type != type_ || first < 0 || count * row_elements() != static_cast<std::int64_t>(elements) ||
      first + count > rows()) {
    throw std::out_of_range(fmt::format("{}: {} elements from row {}", where_, elements, first));
  }
  Hdf5Id space = space_of(shape_);
  std::vector<hsize_t> start(shape_.size(), 0), size(shape_.begin(), shape_.end());
  start[0] = static_cast<hsize_t>(first);
  size[0] = static_cast<hsize_t>(count);
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr);
  return space;
}

void PlainDataset::write_rows(std::int64_t first, std::size_t elements, ElementType type,
                              const void* values) {
  const Hdf5Lock lock;
  const Hdf5Id space = select(first, elements, type);
  if (elements == 0) return;
  const Hdf5Id memory = space_of({static_cast<std::int64_t>(elements)});
  check_hdf5(H5Dwrite(id_.get(), hdf5_type(type), memory.get(), space.get(), H5P_DEFAULT, values),
             "write", where_);
}

void PlainDataset::read_rows(std::int64_t first, std::size_t elements, ElementType type,
                             void* values) const {
  const Hdf5Lock lock;
  const Hdf5Id space = select(first, elements, type);
  if (elements == 0) return;
  const Hdf5Id memory = space_of({static_cast<std::int64_t>(elements)});
  check_hdf5(H5Dread(id_.get(), hdf5_type(type), memory.get(), space.get(), H5P_DEFAULT, values),
             "read", where_);
}

void write_texts(const Hdf5Id& group, const std::string& name, std::span<const std::string> texts,
                 std::string_view where) {
  const Hdf5Lock lock;
  std::size_t bytes = 1;
  for (const std::string& text : texts) bytes = std::max(bytes, text.size());
  std::vector<char> padded(bytes * texts.size(), 0);
  for (std::size_t i = 0; i < texts.size(); ++i)
    std::memcpy(padded.data() + i * bytes, texts[i].data(), texts[i].size());
  const Hdf5Id type = text_type(bytes);
  const Hdf5Id dataset =
      create_dataset(group, name, type.get(), {static_cast<std::int64_t>(texts.size())}, where);
  if (texts.empty()) return;
  check_hdf5(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()),
             "write", place(where, name));
}

std::vector<std::string> read_texts(const Hdf5Id& group, const std::string& name,
                                    std::int64_t count, std::string_view where) {
  const Hdf5Lock lock;
  const Hdf5Id dataset = open_dataset(group, name, where);
  const Hdf5Id stored(H5Dget_type(dataset.get()), H5Tclose);
  if (H5Tget_class(stored.get()) != H5T_STRING || H5Tis_variable_str(stored.get()) != 0 ||
      shape_of(dataset) != std::vector{count}) {
    throw DataError(
        fmt::format("{} does not hold {} texts of one length", place(where, name), count));
  }
  if (count == 0) return {};
  const std::size_t bytes = H5Tget_size(stored.get());
  std::vector<char> padded(bytes * static_cast<std::size_t>(count));
  check_hdf5(H5Dread(dataset.get(), stored.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()),
             "read", place(where, name));
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < count; ++i) {
    const char* begin = padded.data() + static_cast<std::size_t>(i) * bytes;
    texts.emplace_back(begin, std::find(begin, begin + bytes, 0));
  }
  return texts;
}

}  // namespace tpudist
