#include "data/loading/cache_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"

namespace tpudist {
namespace {

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

NewCacheFile::NewCacheFile(const PrivateFolder& folder, std::string name, Descriptor descriptor)
    : folder_(&folder), name_(std::move(name)), descriptor_(std::move(descriptor)) {}

NewCacheFile::~NewCacheFile() {
  if (!descriptor_) return;
  if (stands_in(folder_->descriptor(), new_name(name_), descriptor_))
    ::unlinkat(folder_->descriptor().get(), new_name(name_).c_str(), 0);
}

std::filesystem::path NewCacheFile::path() const {
  return folder_->path() / new_name(name_);
}

void NewCacheFile::publish() {
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
    if (!try_lock(file, FileLock::shared, path_of(name))) {
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

std::optional<NewCacheFile> CacheFolder::begin(const std::string& name) const {
  const std::filesystem::path path = path_of(new_name(name));
  for (;;) {
    Descriptor file = open_file(folder_, new_name(name), O_RDWR | O_CREAT);
    check_posix(file.get(), "create", path);
    require_own_file(file, path);
    if (!try_lock(file, FileLock::exclusive, path)) return std::nullopt;
    if (!stands_in(folder_.descriptor(), new_name(name), file)) continue;  // just published
    check_posix(uninterrupted([&] { return ::ftruncate(file.get(), 0); }), "truncate", path);
    return NewCacheFile(folder_, name, std::move(file));
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
  if (!file || !try_lock(file, FileLock::exclusive, path_of(entry.name))) return false;
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
  if (try_lock(file, FileLock::exclusive, path_of(name)) &&
      stands_in(folder_.descriptor(), name, file))
    ::unlinkat(folder_.descriptor().get(), name.c_str(), 0);
}

}  // namespace tpudist
