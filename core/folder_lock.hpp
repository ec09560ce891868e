#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/descriptor.hpp"

namespace tpudist {

inline constexpr std::string_view kLockName = ".tpudist-lock";

// Keeps other processes from writing into a folder while this object lives. The lock is flock(2) on
// the file `.tpudist-lock` in the folder, so the kernel releases it however the process ends. A
// file left by a killed process locks nothing. The file names the holder, for the error message of
// the next process, and is removed at the end. Under MPI only rank 0 takes the lock.
class FolderLock {
 public:
  // `folder` must exist. `command` is what this process does, e.g. "tpudist train". Throws
  // InUseError when another process, or another object of this process, holds the lock; the message
  // has command, process, host, user and time of the holder. Throws IoError when the file cannot be
  // opened. On a file system without locks it only logs a warning. `name`: the lock file; things in
  // one folder with different names lock separately.
  FolderLock(const std::filesystem::path& folder, std::string_view command,
             std::string_view name = kLockName);
  ~FolderLock();

  // The new path of the locked folder, if the folder was renamed; else "".
  std::filesystem::path new_folder() const;

 private:
  const std::filesystem::path path_;
  Descriptor file_;  // none: the file system has no locks
};

// The holder of the lock on `name` in the folder, as the holder wrote it. Nothing if nobody holds
// the lock, the file does not exist, or the file system has no locks. Changes nothing, but holds a
// shared lock while looking.
std::optional<std::string> lock_holder(const std::filesystem::path& folder,
                                       std::string_view name = kLockName);

}  // namespace tpudist
