#include "core/descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tpudist {

std::string_view advice_for(int error_number) {
  const bool few_files = error_number == EMFILE || error_number == ENFILE;
  return few_files ? "; allow more open files, e.g. ulimit -n 4096" : "";
}

void throw_io_error(std::string_view operation, const std::filesystem::path& path,
                    int error_number) {
  throw IoError(fmt::format("cannot {} {}: {}{}", operation, path.string(),
                            std::generic_category().message(error_number),
                            advice_for(error_number)));
}

int Descriptor::close() noexcept {
  // An interruption by a signal is no error.
  if (number_ < 0 || ::close(std::exchange(number_, -1)) == 0 || errno == EINTR) return 0;
  return errno;
}

Descriptor open_file(const std::filesystem::path& path, int flags, std::string_view operation) {
  return Descriptor(
      check_posix(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); }),
                  operation, path));
}

int write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(file.get(), bytes.data(), bytes.size()); });
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

bool try_lock(const Descriptor& file, int lock, const std::filesystem::path& path) {
  const int result = uninterrupted([&] { return ::flock(file.get(), lock | LOCK_NB); });
  if (result != 0 && errno == EWOULDBLOCK) return false;
  check_posix(result, "lock", path);
  return true;
}

bool stands_in(const Descriptor& folder, const std::string& name, const Descriptor& file) {
  struct stat open_file {
  }, named_file{};
  return ::fstat(file.get(), &open_file) == 0 &&
         ::fstatat(folder ? folder.get() : AT_FDCWD, name.c_str(), &named_file,
                   AT_SYMLINK_NOFOLLOW) == 0 &&
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
  descriptor_ = open_file(path_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
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
