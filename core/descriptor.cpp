#include "core/descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/check.hpp"

namespace tpudist {

void Descriptor::close() noexcept {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

bool try_lock(const Descriptor& file, FileLock lock, const std::filesystem::path& path) {
  const int kind = lock == FileLock::shared ? LOCK_SH : LOCK_EX;
  const int result = uninterrupted([&] { return ::flock(file.get(), kind | LOCK_NB); });
  if (result != 0 && errno == EWOULDBLOCK) return false;
  check_posix(result, "lock", path);
  return true;
}

bool stands_in(const Descriptor& folder, const std::string& name, const Descriptor& file) {
  struct stat open_file {
  }, named_file{};
  return ::fstat(file.get(), &open_file) == 0 &&
         ::fstatat(folder.get(), name.c_str(), &named_file, AT_SYMLINK_NOFOLLOW) == 0 &&
         open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
}

PrivateFolder::PrivateFolder(const std::filesystem::path& place)
    : path_(place / fmt::format("tpudist-{}", ::geteuid())) {
  std::error_code error;
  std::filesystem::create_directories(place, error);
  if (error) throw_io_error("make the folder", place, error.value());
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
    throw_io_error("make the folder", path_, errno);
  struct stat found {};
  check_posix(::lstat(path_.c_str(), &found), "look at", path_);
  if (!S_ISDIR(found.st_mode)) {
    throw IoError(fmt::format("{} is {} and no folder: remove it", path_.string(),
                              S_ISLNK(found.st_mode) ? "a symbolic link" : "a file"));
  }
  const int opened = uninterrupted(
      [&] { return ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); });
  descriptor_ = Descriptor(check_posix(opened, "open", path_));
  // Checks the opened folder, not the path.
  check_posix(::fstat(descriptor_.get(), &found), "look at", path_);
  if (found.st_uid != ::geteuid()) {
    throw IoError(fmt::format("{} belongs to user {}, not to this one ({}): take another folder",
                              path_.string(), found.st_uid, ::geteuid()));
  }
  if ((found.st_mode & 0077) != 0) {
    throw IoError(fmt::format("{} may be entered by other users (mode {:04o}): chmod 700 it",
                              path_.string(), found.st_mode & 07777));
  }
}

}  // namespace tpudist
