#include "core/private_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/check.hpp"

namespace tpudist {

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
