#pragma once

#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace tpudist {

// Advice to append to the message of a system error, e.g. "; allow more open files, ..." if too
// many are open; "" without advice.
std::string_view advice_for(int error_number);

// Throws IoError "cannot OPERATION PATH: REASON" with the reason of `error_number`, and advice.
[[noreturn]] void throw_io_error(std::string_view operation, const std::filesystem::path& path,
                                 int error_number);

// Repeats a POSIX call as long as a signal interrupts it (-1 with EINTR), and returns its result.
// Not for close(2), which frees the descriptor even when a signal interrupts it.
template <typename Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result != decltype(result){-1} || errno != EINTR) return result;
  }
}

// Returns the result of a POSIX call that reports failure as -1 with errno; throws IoError on
// failure.
template <typename T>
T check_posix(T result, std::string_view operation, const std::filesystem::path& path) {
  if (result == T{-1}) throw_io_error(operation, path, errno);
  return result;
}

// Owns an open file descriptor. Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}  // takes ownership; below 0: none
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  // Returns the error number, 0 for none. The descriptor is free even after an error.
  int close() noexcept;

 private:
  int number_ = -1;
};

// open(2), also with O_CLOEXEC. A new file gets mode 0666. Throws IoError "cannot OPERATION PATH".
Descriptor open_file(const std::filesystem::path& path, int flags,
                     std::string_view operation = "open");
// Writes all bytes. Returns the error number, 0 for none.
int write_all(const Descriptor& file, std::string_view bytes);

// flock(2) without waiting; `lock` is LOCK_SH or LOCK_EX. Returns false when another process, or another open file of this
// process, holds a conflicting lock. Throws IoError, also on a file system without locks.
bool try_lock(const Descriptor& file, int lock, const std::filesystem::path& path);

// Whether `name` in the open folder still is this open file (neither removed nor replaced). Without
// a folder, `name` is a path.
bool stands_in(const Descriptor& folder, const std::string& name, const Descriptor& file);

// The folder `tpudist-UID` in a place that users of a machine share, such as /dev/shm. Only the
// user of this process may enter it. The folder is opened once and its files relative to it, so
// that nobody can put another folder in its place.
class PrivateFolder {
 public:
  // Creates missing folders, the last one with mode 0700. Throws IoError with the reason when the
  // folder is not safe: a symbolic link, not a folder, owned by another user, or open to others.
  explicit PrivateFolder(const std::filesystem::path& place);

  const std::filesystem::path& path() const { return path_; }
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace tpudist
