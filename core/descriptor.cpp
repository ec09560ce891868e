#include "core/descriptor.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace tpudist
