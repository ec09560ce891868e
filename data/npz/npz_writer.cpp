#include "data/npz/npz_writer.hpp"

#include <zip.h>

#include <cstring>
#include <exception>
#include <stdexcept>

#include "core/error.hpp"
#include "data/npz/zip_archive.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kFilledBytes = 256 << 10;  // roughly the output of one fill call

// The bytes of an array. Throws if a dimension is negative or the size does not fit.
std::uint64_t array_bytes(std::string_view name, std::size_t element_bytes,
                          std::span<const std::int64_t> shape) {
  std::uint64_t bytes = element_bytes;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes) ||
        bytes > (std::uint64_t{1} << 62)) {
      throw std::invalid_argument("array " + std::string(name) + ": impossible shape");
    }
  }
  return bytes;
}

// One zip member: existing bytes (head), then rows that are generated on demand.
struct Member {
  std::vector<std::byte> head;
  std::uint64_t body_bytes = 0, row_bytes = 1;
  std::function<void(std::int64_t, std::span<std::byte>)> fill;
  std::exception_ptr* failure = nullptr;

  std::uint64_t position = 0;  // bytes handed out
  std::vector<std::byte> piece;
  std::size_t piece_used = 0;
  zip_error_t error{};

  std::uint64_t size() const { return head.size() + body_bytes; }

  std::size_t read(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size() && position < size()) {
      const auto part = next(out.size() - done);
      std::memcpy(out.data() + done, part.data(), part.size());
      done += part.size();
      position += part.size();
    }
    return done;
  }

  // Up to `limit` bytes at `position`.
  std::span<const std::byte> next(std::size_t limit) {
    if (position < head.size()) {
      return std::span(head).subspan(position, std::min(limit, head.size() - position));
    }
    if (piece_used == piece.size()) {
      const std::uint64_t at = position - head.size();
      const std::uint64_t rows = std::max<std::uint64_t>(1, kFilledBytes / row_bytes);
      piece.resize(std::min(rows * row_bytes, body_bytes - at));
      fill(static_cast<std::int64_t>(at / row_bytes), piece);
      piece_used = 0;
    }
    const auto part =
        std::span(piece).subspan(piece_used, std::min(limit, piece.size() - piece_used));
    piece_used += part.size();
    return part;
  }
};

// libzip's view of a Member (see zip_source_function).
zip_int64_t read_member(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& member = *static_cast<Member*>(state);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    case ZIP_SOURCE_OPEN:
      member.position = member.piece_used = 0;
      member.piece.clear();
      return 0;
    case ZIP_SOURCE_READ:
      try {
        return static_cast<zip_int64_t>(member.read({static_cast<std::byte*>(data), length}));
      } catch (...) {
        *member.failure = std::current_exception();
        zip_error_set(&member.error, ZIP_ER_INTERNAL, 0);
        return -1;
      }
    case ZIP_SOURCE_STAT: {
      auto& stat = *static_cast<zip_stat_t*>(data);
      zip_stat_init(&stat);
      stat.size = member.size();
      stat.valid |= ZIP_STAT_SIZE;
      return sizeof stat;
    }
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&member.error, data, length);
    case ZIP_SOURCE_FREE:
      zip_error_fini(&member.error);
      delete &member;
      return 0;
    case ZIP_SOURCE_CLOSE:
      member.piece = {};
      return 0;
    default:
      return -1;
  }
}

std::unique_ptr<Member> member_with_header(std::string_view descr,
                                           std::span<const std::int64_t> shape) {
  auto member = std::make_unique<Member>();
  const std::string header = npy_header(descr, shape);
  const auto bytes = std::as_bytes(std::span(header));
  member->head.assign(bytes.begin(), bytes.end());
  return member;
}

}  // namespace

std::string npy_header(std::string_view descr, std::span<const std::int64_t> shape) {
  std::string text = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(shape[i]);
  }
  text += shape.size() == 1 ? ",), }" : "), }";
  constexpr std::size_t kPrelude = 10;  // magic, version, length
  text.append(64 - (kPrelude + text.size() + 1) % 64, ' ');
  text += '\n';
  const char length[] = {static_cast<char>(text.size() & 0xff),
                         static_cast<char>(text.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + std::string(length, 2) + text;
}

struct NpzWriter::Impl {
  Impl(const std::filesystem::path& path, NpzOptions options)
      : final_path(path), options(options), file(path) {
    int code = 0;
    zip = zip_open(file.path().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!zip) throw IoError(path.string() + ": cannot create the zip file: " + zip_reason(code));
  }
  ~Impl() {
    if (zip) zip_discard(zip);
  }

  [[noreturn]] void fail(const std::string& what) {
    throw IoError(final_path.string() + ": " + what + ": " + zip_strerror(zip));
  }

  void add(const std::string& member_name, std::unique_ptr<Member> member) {
    if (zip_name_locate(zip, member_name.c_str(), 0) >= 0) {
      throw std::invalid_argument(final_path.string() + ": two members named " + member_name);
    }
    member->failure = &failure;
    zip_error_init(&member->error);
    zip_source_t* source = zip_source_function(zip, read_member, member.get());
    if (!source) fail("cannot add " + member_name);
    member.release();  // freed by libzip through ZIP_SOURCE_FREE
    const auto index = zip_file_add(zip, member_name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      fail("cannot add " + member_name);
    }
    const auto number = static_cast<zip_uint64_t>(index);
    const bool store = options.deflate_level == 0;
    constexpr zip_uint16_t kFirstOfJanuary1980 = (1 << 5) | 1;
    if (zip_set_file_compression(zip, number, store ? ZIP_CM_STORE : ZIP_CM_DEFLATE,
                                 static_cast<zip_uint32_t>(options.deflate_level)) ||
        zip_file_set_dostime(zip, number, 0, kFirstOfJanuary1980, 0)) {
      fail("cannot set up " + member_name);
    }
  }

  std::filesystem::path final_path;
  NpzOptions options;
  TemporaryFile file;
  std::exception_ptr failure;  // thrown by a fill function
  zip_t* zip = nullptr;
};

NpzWriter::NpzWriter(const std::filesystem::path& path, NpzOptions options)
    : impl_(std::make_unique<Impl>(path, options)) {}

NpzWriter::~NpzWriter() = default;

void NpzWriter::add_array(std::string_view name, const std::string& descr,
                          const std::vector<std::int64_t>& shape,
                          std::span<const std::byte> bytes) {
  const auto element_bytes = static_cast<std::size_t>(descr.back() - '0');
  if (array_bytes(name, element_bytes, shape) != bytes.size()) {
    throw std::invalid_argument("array " + std::string(name) +
                                ": shape and number of values differ");
  }
  auto member = member_with_header(descr, shape);
  member->head.insert(member->head.end(), bytes.begin(), bytes.end());
  impl_->add(std::string(name) + ".npy", std::move(member));
}

void NpzWriter::add_source(std::string_view name, const std::string& descr,
                           std::size_t element_bytes, const std::vector<std::int64_t>& shape,
                           Fill fill) {
  if (shape.empty()) throw std::invalid_argument("a streamed array needs a first axis");
  auto member = member_with_header(descr, shape);
  member->body_bytes = array_bytes(name, element_bytes, shape);
  if (member->body_bytes) {
    member->row_bytes = member->body_bytes / static_cast<std::uint64_t>(shape[0]);
  }
  member->fill = std::move(fill);
  impl_->add(std::string(name) + ".npy", std::move(member));
}

void NpzWriter::add_raw(std::string_view member_name, std::span<const std::byte> bytes) {
  auto member = std::make_unique<Member>();
  member->head.assign(bytes.begin(), bytes.end());
  impl_->add(std::string(member_name), std::move(member));
}

void NpzWriter::finish() {
  if (zip_close(impl_->zip)) {
    if (impl_->failure) std::rethrow_exception(impl_->failure);
    impl_->fail("cannot write the zip file");
  }
  impl_->zip = nullptr;
  if (impl_->options.durable) return impl_->file.commit();
  posix_file_system().rename(impl_->file.path(), impl_->final_path);
}

}  // namespace tpudist
