#include "data/npz/zip_archive.hpp"

#include <fmt/format.h>
#include <libdeflate.h>
#include <zip.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/mutex.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kInputBytes = 64 << 10;
constexpr std::string_view kWrongCrc = "wrong CRC: the stored bytes are damaged";

[[noreturn]] void throw_open_error(const std::filesystem::path& path, int code) {
  std::error_code ignored;
  const bool is_there = std::filesystem::exists(path, ignored);  // libzip reports damage likewise
  const bool system =
      (code == ZIP_ER_NOENT && !is_there) || code == ZIP_ER_OPEN || code == ZIP_ER_MEMORY;
  const std::string reason = zip_reason(code);
  if (system) throw IoError(fmt::format("cannot open {}: {}", path.string(), reason));
  throw DataError(fmt::format("{}: not a sound zip file ({}); it may be damaged or cut short",
                              path.string(), reason));
}

ZipArchive::Member member_of(zip_t* archive, zip_uint64_t index, const std::string& path) {
  zip_stat_t stat;
  const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD |
                              ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive, index, 0, &stat) != 0 || (stat.valid & needed) != needed) {
    throw DataError(fmt::format("{}: the zip directory lacks entry {}", path, index));
  }
  if (stat.encryption_method != ZIP_EM_NONE) {
    throw DataError(fmt::format("{}: {} is encrypted", path, stat.name));
  }
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    throw DataError(
        fmt::format("{}: {} is compressed by method {}; only stored and deflated members "
                    "are read",
                    path, stat.name, stat.comp_method));
  }
  return {stat.name, stat.size, stat.crc, stat.comp_method == ZIP_CM_DEFLATE};
}

}  // namespace

std::string zip_reason(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

void require_searchable(const std::filesystem::path& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type != std::filesystem::file_type::fifo && type != std::filesystem::file_type::socket &&
      type != std::filesystem::file_type::character)
    return;
  throw DataError(
      fmt::format("{}: is a pipe or a terminal, and an NPZ file is read in any order; give the "
                  "file, or `< F.npz` "
                  "in place of `cat F.npz |`",
                  path.string()));
}

struct ZipArchive::Stream::Impl {
  Impl(zip_file_t* opened, const ZipArchive::Member& m, std::string place)
      : file(opened), member(m), where(std::move(place)) {
    if (!member.deflated) return;
    if (inflateInit2(&inflater, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    input.resize(kInputBytes);
  }
  ~Impl() {
    if (member.deflated) inflateEnd(&inflater);
    zip_fclose(file);
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw DataError(fmt::format("{}: {}", where, what));
  }

  // Compressed bytes; 0 at the end.
  std::size_t read_raw(std::span<std::byte> out) const {
    const zip_int64_t count = zip_fread(file, out.data(), out.size());
    if (count < 0) {
      // libzip checks the CRC of stored members itself.
      if (zip_error_code_zip(zip_file_get_error(file)) == ZIP_ER_CRC) fail(kWrongCrc);
      fail(fmt::format("cannot be read ({})", zip_file_strerror(file)));
    }
    return static_cast<std::size_t>(count);
  }

  // Produces more bytes, at least one unless the member ends.
  std::size_t produce(std::span<std::byte> out) {
    if (!member.deflated) {
      const std::size_t count = read_raw(out);
      ended = count == 0;
      return count;
    }
    const auto room = static_cast<uInt>(std::min<std::size_t>(out.size(), 1u << 30));
    inflater.next_out = reinterpret_cast<Bytef*>(out.data());
    inflater.avail_out = room;
    while (inflater.avail_out == room && !ended) {
      if (inflater.avail_in == 0) {
        inflater.next_in = reinterpret_cast<Bytef*>(input.data());
        inflater.avail_in = static_cast<uInt>(read_raw(input));
        if (inflater.avail_in == 0) fail("is cut short");
      }
      const int result = inflate(&inflater, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result != Z_OK && result != Z_STREAM_END) fail("cannot be inflated: it is damaged");
      ended = result == Z_STREAM_END;
    }
    return room - inflater.avail_out;
  }

  zip_file_t* const file;
  const ZipArchive::Member member;
  const std::string where;
  z_stream inflater{};
  std::vector<std::byte> input;
  std::uint64_t produced = 0;
  std::uint32_t crc = 0;
  bool ended = false;
};

ZipArchive::Stream::Stream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ZipArchive::Stream::~Stream() = default;
ZipArchive::Stream::Stream(Stream&&) noexcept = default;
ZipArchive::Stream& ZipArchive::Stream::operator=(Stream&&) noexcept = default;

std::size_t ZipArchive::Stream::read(std::span<std::byte> out) {
  Impl& m = *impl_;
  std::size_t done = 0;
  while (done < out.size() && !m.ended) {
    const std::size_t count = m.produce(out.subspan(done));
    m.crc = libdeflate_crc32(m.crc, out.data() + done, count);
    m.produced += count;
    done += count;
    if (m.produced > m.member.bytes) m.fail("is longer than the zip directory says");
    if (!m.ended) continue;
    if (m.produced != m.member.bytes) m.fail("is shorter than the zip directory says");
    if (m.crc != m.member.crc) m.fail(kWrongCrc);
  }
  return done;
}

void ZipArchive::Close::operator()(zip* archive) const {
  zip_discard(archive);
}

ZipArchive::ZipArchive(const std::filesystem::path& path) : path_(path) {
  require_searchable(path);
  int code = 0;
  // zip_open converts the members' dates by mktime, whose lock ThreadSanitizer cannot see.
  static Mutex opening;
  const MutexLock lock(opening);
  do {  // again if a signal interrupts it
    zip_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  } while (!zip_ && code == ZIP_ER_OPEN && errno == EINTR);
  if (!zip_) throw_open_error(path, code);
  const zip_int64_t count = zip_get_num_entries(zip_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    members_.push_back(member_of(zip_.get(), static_cast<zip_uint64_t>(i), path.string()));
    if (zip_name_locate(zip_.get(), members_.back().name.c_str(), 0) != i)
      throw DataError(fmt::format("{}: two members are called {}; pack it again", path.string(),
                                  members_.back().name));
  }
}

ZipArchive::Stream ZipArchive::open(std::size_t index) const {
  const Member& member = members_.at(index);
  const std::string where = fmt::format("{}: {}", path_.string(), member.name);
  zip_file_t* const file = zip_fopen_index(zip_.get(), index, ZIP_FL_COMPRESSED);
  if (!file) {
    throw DataError(fmt::format("{}: cannot be opened ({})", where, zip_strerror(zip_.get())));
  }
  return Stream(std::make_unique<Stream::Impl>(file, member, where));
}

}  // namespace tpudist
