#include "core/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

std::string user_name() {
  std::array<char, 4096> buffer{};
  passwd entry{}, *found = nullptr;
  getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found ? found->pw_name : fmt::format("{}", ::geteuid());
}

std::string describe_this_process(std::string_view command) {
  return fmt::format("{}, process {} of user {} on {}, since {:%Y-%m-%d %H:%M:%S} UTC", command,
                     ::getpid(), user_name(), host_name(), fmt::gmtime(std::time(nullptr)));
}

// A user can lock another user's file without the right to write it: flock needs that right only on
// NFS.
int open_lock_file(const std::filesystem::path& path) {
  const auto open_with = [&](int flags) {
    return uninterrupted(
        [&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666); });
  };
  int descriptor = open_with(O_RDWR | O_CREAT);
  if (descriptor < 0 && errno == EACCES) {
    descriptor = open_with(O_RDONLY);
    if (descriptor < 0 && errno == ENOENT) errno = EACCES;  // the folder refuses a new file
  }
  return check_posix(descriptor, "open", path);
}

// Whether the open file still has this name. A holder removes the file at the end, and a lock on a
// removed file keeps nobody out.
bool stands_there(const Descriptor& file, const std::filesystem::path& path) {
  return stands_in(Descriptor(), path.string(), file);
}

std::string read_holder(int descriptor) {
  std::array<char, 512> buffer{};
  const ssize_t bytes =
      uninterrupted([&] { return ::pread(descriptor, buffer.data(), buffer.size() - 1, 0); });
  const std::string_view text(buffer.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  const std::string_view line = trim(text.substr(0, text.find('\n')));
  return line.empty() ? "another process" : std::string(line);
}

constexpr int kNotSupported = 524;  // internal to the kernel, but Cray DVS returns it
// Errors of file systems without locks.
constexpr std::array kNoLocks{ENOLCK, ENOSYS, EOPNOTSUPP,   EPROTONOSUPPORT,
                              EINVAL, ENOTTY, kNotSupported};

// Only for messages: if it cannot be written (another user's file, a full disk), the lock is still
// valid.
void write_holder(int descriptor, std::string_view command) {
  const std::string text = describe_this_process(command) + "\n";
  if (uninterrupted([&] { return ::ftruncate(descriptor, 0); }) != 0) return;
  if (uninterrupted([&] { return ::pwrite(descriptor, text.data(), text.size(), 0); }) < 0) return;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, std::string_view command,
                       std::string_view name)
    : path_(folder / name) {
  for (;;) {
    Descriptor file(open_lock_file(path_));
    if (uninterrupted([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) == 0) {
      if (!stands_there(file, path_)) continue;  // its holder removed it just now
      file_ = std::move(file);
      write_holder(file_.get(), command);
      return;
    }
    const int error = errno;
    if (error == EWOULDBLOCK) {
      throw InUseError(fmt::format("{}: is in use by {}; wait for its end, or take another folder",
                                   folder.string(), read_holder(file.get())));
    }
    if (std::ranges::find(kNoLocks, error) == kNoLocks.end()) throw_io_error("lock", path_, error);
    spdlog::warn("{}: this file system has no locks ({}); let no other process write here",
                 folder.string(), std::strerror(error == kNotSupported ? EOPNOTSUPP : error));
    return;
  }
}

FolderLock::~FolderLock() {
  const std::filesystem::path moved = new_folder();
  const std::filesystem::path path = moved.empty() ? path_ : moved / path_.filename();
  if (stands_there(file_, path)) ::unlink(path.c_str());
}

std::filesystem::path FolderLock::new_folder() const {
  std::error_code unknown;
  const std::string link = fmt::format("/proc/self/fd/{}", file_.get());
  const std::filesystem::path now = std::filesystem::read_symlink(link, unknown);
  const bool moved = !stands_there(file_, path_) && stands_there(file_, now);
  return moved ? now.parent_path() : "";
}

std::optional<std::string> lock_holder(const std::filesystem::path& folder, std::string_view name) {
  const std::filesystem::path path = folder / name;
  const Descriptor file(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW); }));
  if (!file) return std::nullopt;
  const bool free = uninterrupted([&] { return ::flock(file.get(), LOCK_SH | LOCK_NB); }) == 0 ||
                    errno != EWOULDBLOCK;
  if (free) return std::nullopt;
  return read_holder(file.get());
}

}  // namespace tpudist
