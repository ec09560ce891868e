#include "core/append_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/check.hpp"

namespace tpudist {
namespace {

// 0, or the error number.
int append(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor, text.data(), text.size()); });
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void append_to_file(const std::filesystem::path& path, std::string_view text) {
  const int descriptor = uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666); });
  check_posix(descriptor, "write", path);
  struct stat before {};
  const bool regular = ::fstat(descriptor, &before) == 0 && S_ISREG(before.st_mode);
  int error = append(descriptor, text);
  // The error of the write is reported, also if the file cannot be cut.
  if (error != 0 && regular &&
      uninterrupted([&] { return ::ftruncate(descriptor, before.st_size); }) != 0)
    errno = error;
  if (::close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error != 0) throw_io_error("write", path, error);
}

}  // namespace tpudist
