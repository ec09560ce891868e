#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tpudist {

inline constexpr std::string_view kLockName = ".tpudist-lock";

// Keeps other processes from writing into a folder while this object lives. The lock is flock(2) on
// the file `.tpudist-lock` in the folder, so that the kernel gives it back when the process dies,
// however it dies; the file alone, left by a process that was killed, locks nothing. The file says
// who holds the lock, for the message of whoever comes second, and is removed at the end. Under MPI
// only rank 0 takes the lock.
class FolderLock {
 public:
  // `folder` must exist. `command` is what this process does, e.g. "tpudist train". Throws InUseError
  // with command, process, host, user and time of the holder when another process, or another object
  // of this process, holds the lock; IoError when the file cannot be opened. On a file system
  // without locks it only logs a warning. With another `name` the lock is on that file instead: one
  // of several things in the folder that can be held apart.
  FolderLock(const std::filesystem::path& folder, std::string_view command,
             std::string_view name = kLockName);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;  // -1: the file system has no locks
};

// Who holds the lock on `name` in the folder, as the holder wrote it; nothing where nobody does, there is
// no such file, or the file system has no locks. Changes nothing; for the moment of asking the file has a
// shared lock.
std::optional<std::string> lock_holder(const std::filesystem::path& folder,
                                       std::string_view name = kLockName);

}  // namespace tpudist
