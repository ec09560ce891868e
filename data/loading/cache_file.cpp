#include "data/loading/cache_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"

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
    into = into.subspan(count);
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
    hashes[i] = hasher.digest();
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

constexpr int kMostTries = 5000;  // a millisecond each

std::string new_name(const std::string& name) {
  return name + ".new";
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Empty, with errno, if the file cannot be opened. It may be another program's link or FIFO.
Descriptor open_file(const PrivateFolder& folder, const std::string& name, int flags) {
  return Descriptor(uninterrupted([&] {
    return ::openat(folder.descriptor().get(), name.c_str(),
                    flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  }));
}

// Does not trust a file of another user, which only root can have put here.
void require_own_file(const Descriptor& file, const std::filesystem::path& path) {
  struct stat found {};
  check_posix(::fstat(file.get(), &found), "look at", path);
  if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid())
    throw IoError(fmt::format("{} is no file of this user: remove it", path.string()));
}

std::uint64_t free_bytes(const Descriptor& folder, const std::filesystem::path& path) {
  struct statvfs disk {};
  check_posix(::fstatvfs(folder.get(), &disk), "look at", path);
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
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
    bytes = bytes.subspan(count);
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

const std::byte* CacheFile::bytes_at(const Place& place, std::size_t element) const {
  if (place.offset % kAlignment != 0 || place.offset > bytes() ||
      place.count > (bytes() - place.offset) / element)
    throw DataError(path_.string() + ": an array is not within the file");
  return bytes_.data() + place.offset;
}

CacheFolder::NewFile::NewFile(const PrivateFolder& folder, std::string name, Descriptor descriptor)
    : folder_(&folder), name_(std::move(name)), descriptor_(std::move(descriptor)) {}

CacheFolder::NewFile::~NewFile() {
  if (!descriptor_) return;
  if (stands_in(folder_->descriptor(), new_name(name_), descriptor_))
    ::unlinkat(folder_->descriptor().get(), new_name(name_).c_str(), 0);
}

std::filesystem::path CacheFolder::NewFile::path() const {
  return folder_->path() / new_name(name_);
}

void CacheFolder::NewFile::publish() {
  const int folder = folder_->descriptor().get();
  check_posix(::renameat(folder, new_name(name_).c_str(), folder, name_.c_str()), "rename", path());
  descriptor_.close();
}

struct CacheFolder::Entry {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t used = 0;  // time of last use, in nanoseconds
};

CacheFolder::CacheFolder(const std::filesystem::path& place, std::uint64_t most_bytes)
    : folder_(place), most_bytes_(most_bytes) {}

std::filesystem::path CacheFolder::path_of(const std::string& name) const {
  return folder_.path() / name;
}

Descriptor CacheFolder::open(const std::string& name) const {
  for (int tries = 0; tries < kMostTries; ++tries) {
    Descriptor file = open_file(folder_, name, O_RDONLY);
    if (!file && errno == ENOENT) return file;
    check_posix(file.get(), "open", path_of(name));
    require_own_file(file, path_of(name));
    // A process with an exclusive lock removes the file, or has just published it and closes it
    // soon.
    if (!try_lock(file, LOCK_SH, path_of(name))) {
      ::usleep(1000);
      continue;
    }
    if (!stands_in(folder_.descriptor(), name, file)) continue;
    // The file is usable even without a new time, e.g. on a read-only disk.
    if (::futimens(file.get(), nullptr) != 0) spdlog::debug("no time for {}", name);
    return file;
  }
  throw IoError(path_of(name).string() + ": is locked by another process");
}

std::optional<CacheFolder::NewFile> CacheFolder::begin(const std::string& name) const {
  const std::filesystem::path path = path_of(new_name(name));
  for (;;) {
    Descriptor file = open_file(folder_, new_name(name), O_RDWR | O_CREAT);
    check_posix(file.get(), "create", path);
    require_own_file(file, path);
    if (!try_lock(file, LOCK_EX, path)) return std::nullopt;
    if (!stands_in(folder_.descriptor(), new_name(name), file)) continue;  // just published
    check_posix(uninterrupted([&] { return ::ftruncate(file.get(), 0); }), "truncate", path);
    return NewFile(folder_, name, std::move(file));
  }
}

std::uint64_t CacheFolder::progress_of(const std::string& name) const {
  struct stat found {};
  if (::fstatat(folder_.descriptor().get(), new_name(name).c_str(), &found, AT_SYMLINK_NOFOLLOW) !=
      0)
    return 0;
  return static_cast<std::uint64_t>(nanoseconds(found.st_mtim)) ^
         static_cast<std::uint64_t>(found.st_size);
}

std::vector<CacheFolder::Entry> CacheFolder::entries() const {
  std::vector<Entry> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_.path(), error), end; !error && at != end;
       at.increment(error)) {
    Entry entry{at->path().filename().string()};
    struct stat found {};
    if (::fstatat(folder_.descriptor().get(), entry.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
      continue;  // removed just now
    entry.bytes = static_cast<std::uint64_t>(found.st_size);
    entry.used = nanoseconds(found.st_mtim);
    files.push_back(std::move(entry));
  }
  if (error) throw_io_error("list", folder_.path(), error.value());
  std::ranges::sort(files, {}, &Entry::used);
  return files;
}

bool CacheFolder::remove_if_unused(const Entry& entry) const {
  const Descriptor file = open_file(folder_, entry.name, O_RDONLY);
  if (!file || !try_lock(file, LOCK_EX, path_of(entry.name))) return false;
  if (!stands_in(folder_.descriptor(), entry.name, file)) return false;
  check_posix(::unlinkat(folder_.descriptor().get(), entry.name.c_str(), 0), "remove",
              path_of(entry.name));
  spdlog::debug("removed {} ({})", path_of(entry.name).string(), format_bytes(entry.bytes));
  return true;
}

void CacheFolder::remove_unused(const std::string& but) const {
  for (const Entry& entry : entries()) {
    if (entry.name != but && entry.name != new_name(but)) remove_if_unused(entry);
  }
}

void CacheFolder::make_room(std::uint64_t bytes) const {
  const std::vector<Entry> files = entries();
  std::uint64_t held = 0;
  for (const Entry& entry : files) held += entry.bytes;
  const auto fits = [&] {
    return held + bytes <= most_bytes_ && bytes <= free_bytes(folder_.descriptor(), folder_.path());
  };
  for (const Entry& entry : files) {
    if (fits()) return;
    if (remove_if_unused(entry)) held -= entry.bytes;
  }
  if (fits()) return;
  throw IoError(fmt::format(
      "{} has no room for {}: {} of at most {} (data.cache_size) are in use, and {} of the disk "
      "are "
      "free",
      folder_.path().string(), format_bytes(bytes), format_bytes(held), format_bytes(most_bytes_),
      format_bytes(free_bytes(folder_.descriptor(), folder_.path()))));
}

void CacheFolder::remove_if_last(const std::string& name, const Descriptor& file) const {
  if (try_lock(file, LOCK_EX, path_of(name)) && stands_in(folder_.descriptor(), name, file))
    ::unlinkat(folder_.descriptor().get(), name.c_str(), 0);
}

}  // namespace tpudist
