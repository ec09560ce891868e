#include "data/loading/cache_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/hash.hpp"

namespace tpudist {
namespace {

constexpr std::array<char, 16> kMagic = {'t', 'p', 'u', 'd', 'i', 's', 't',
                                         ' ', 'c', 'a', 'c', 'h', 'e', '\n'};
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 22;  // hashed at a time
// Bytes allocated per call. A signal undoes an interrupted call, so one large call would never
// finish if signals come often.
constexpr std::uint64_t kAllocatedBytes = std::uint64_t{1} << 20;

struct Header {
  std::array<char, 16> magic = kMagic;
  std::uint64_t key = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t directory_offset = 0, directory_bytes = 0;
  std::uint64_t content_hash = 0;  // of all bytes after the header
  std::uint64_t header_hash = 0;   // of the members before
};
static_assert(sizeof(Header) == kAlignment);

std::uint64_t hash_of(const Header& header) {
  return hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_hash)));
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Fills `into`; false if the file ends before.
bool read_at(const Descriptor& file, std::uint64_t offset, std::span<std::byte> into,
             const std::filesystem::path& path) {
  while (!into.empty()) {
    const ssize_t count = uninterrupted(
        [&] { return ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(offset)); });
    check_posix(count, "read", path);
    if (count == 0) return false;
    into = into.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return true;
}

// Reads instead of mapping, so that a failing disk is an error and not a signal.
std::uint64_t hash_content(const Descriptor& file, std::uint64_t file_bytes,
                           const std::filesystem::path& path, ThreadPool& pool) {
  const std::uint64_t content = file_bytes - sizeof(Header);
  std::vector<std::uint64_t> hashes((content + kPieceBytes - 1) / kPieceBytes);
  pool.parallel_for(std::ssize(hashes), [&](std::int64_t i) {
    std::vector<std::byte> buffer(std::size_t{1} << 18);
    std::uint64_t at = static_cast<std::uint64_t>(i) * kPieceBytes;
    const std::uint64_t end = std::min(at + kPieceBytes, content);
    Hasher hasher;
    while (at < end) {
      const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), end - at));
      if (!read_at(file, sizeof(Header) + at, part, path))
        throw DataError(path.string() + ": became shorter while it was read");
      hasher.update(std::span<const std::byte>(part));
      at += part.size();
    }
    hashes[static_cast<std::size_t>(i)] = hasher.digest();
  });
  return hash64(std::as_bytes(std::span(hashes)));
}

Header read_header(const Descriptor& file, const std::filesystem::path& path, std::uint64_t key) {
  struct stat found {};
  check_posix(::fstat(file.get(), &found), "look at", path);
  const auto fail = [&](std::string_view what) {
    throw DataError(fmt::format("{}: {}", path.string(), what));
  };
  Header header;
  if (!read_at(file, 0, std::as_writable_bytes(std::span(&header, 1)), path))
    fail("is too short for a cache file");
  if (header.magic != kMagic) fail("is no cache file");
  if (header.header_hash != hash_of(header)) fail("its header is damaged");
  if (header.key != key) fail("was made from other data");
  if (header.file_bytes != static_cast<std::uint64_t>(found.st_size))
    fail(fmt::format("has {} bytes and not {}", found.st_size, header.file_bytes));
  if (header.directory_offset > header.file_bytes ||
      header.directory_bytes > header.file_bytes - header.directory_offset)
    fail("its directory is not within the file");
  return header;
}

}  // namespace

CacheFileWriter::CacheFileWriter(const Descriptor& file, std::filesystem::path path)
    : file_(file), path_(std::move(path)), end_(sizeof(Header)) {}

std::uint64_t CacheFileWriter::reserve(std::uint64_t bytes) {
  const std::uint64_t offset = end_.fetch_add(aligned(bytes));
  for (std::uint64_t at = offset, end = offset + aligned(bytes); at < end;) {
    const std::uint64_t piece = std::min(end - at, kAllocatedBytes);
    const int error =
        ::posix_fallocate(file_.get(), static_cast<off_t>(at), static_cast<off_t>(piece));
    if (error == EINTR) continue;
    if (error != 0) throw_io_error(fmt::format("allocate {} bytes for", bytes), path_, error);
    at += piece;
  }
  return offset;
}

void CacheFileWriter::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = uninterrupted([&] {
      return ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    check_posix(count, "write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void CacheFileWriter::finish(std::uint64_t key, std::span<const std::byte> directory,
                             ThreadPool& pool) {
  Header header;
  header.key = key;
  header.directory_offset = reserve(directory.size());
  header.directory_bytes = directory.size();
  header.file_bytes = end_;
  write(header.directory_offset, directory);
  header.content_hash = hash_content(file_, header.file_bytes, path_, pool);
  header.header_hash = hash_of(header);
  write(0, std::as_bytes(std::span(&header, 1)));
}

std::shared_ptr<const CacheFile> CacheFile::open(const Descriptor& file,
                                                 const std::filesystem::path& path,
                                                 std::uint64_t key, ThreadPool& pool) {
  const Header header = read_header(file, path, key);
  if (hash_content(file, header.file_bytes, path, pool) != header.content_hash)
    throw DataError(path.string() + ": its content is damaged");
  void* begin = ::mmap(nullptr, header.file_bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (begin == MAP_FAILED) throw_io_error("map", path, errno);
  std::shared_ptr<CacheFile> mapped(new CacheFile);
  mapped->path_ = path;
  mapped->bytes_ = {static_cast<const std::byte*>(begin), header.file_bytes};
  mapped->directory_ = mapped->bytes_.subspan(header.directory_offset, header.directory_bytes);
  return mapped;
}

CacheFile::~CacheFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

const std::byte* CacheFile::bytes_at(const StoredArray& place, std::size_t element) const {
  if (place.offset % kAlignment != 0 || place.offset > bytes() ||
      place.count > (bytes() - place.offset) / element)
    throw DataError(path_.string() + ": an array is not within the file");
  return bytes_.data() + place.offset;
}

}  // namespace tpudist
