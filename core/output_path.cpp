#include "core/output_path.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string>

#include "core/check.hpp"

namespace tpudist {
namespace {

constexpr int kMostLinks = 40;  // as Linux does

void check_is_file_name(const std::filesystem::path& path) {
  if (path.filename().empty() || path.filename() == "." || path.filename() == "..") {
    throw IoError(fmt::format("cannot write {}: not the name of a file",
                              path.empty() ? "''" : path.string()));
  }
}

// Returns N if `path` is N in /dev/fd, /proc/self/fd or similar, whose links stand for open
// descriptors of this process. Their targets need not be paths, and replacing an open file would
// not change the descriptor's file.
std::optional<int> own_descriptor(const std::filesystem::path& path) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(path.parent_path(), error);
  if (error || folder != fmt::format("/proc/{}/fd", ::getpid())) return std::nullopt;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (bad != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// Mode of the file at `path`, not following a symbolic link; 0 if there is none.
mode_t mode_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return status.st_mode;
  if (errno == ENOENT || errno == ENOTDIR) return 0;
  throw_io_error("write", path, errno);
}

}  // namespace

OutputPath resolve_output(const std::filesystem::path& path) {
  OutputPath output{OutputPath::Kind::file, path, -1};
  for (int links = 0; links <= kMostLinks; ++links) {
    check_is_file_name(output.path);
    if (const auto descriptor = own_descriptor(output.path)) {
      output.kind = OutputPath::Kind::descriptor;
      output.descriptor = *descriptor;
      return output;
    }
    const mode_t mode = mode_of(output.path);
    if (S_ISLNK(mode)) {
      std::error_code error;
      const auto target = std::filesystem::read_symlink(output.path, error);
      if (error) throw_io_error("write", path, error.value());
      output.path = output.path.parent_path() / target;
      continue;
    }
    if (S_ISDIR(mode)) throw_io_error("write", path, EISDIR);
    if (mode != 0 && !S_ISREG(mode)) output.kind = OutputPath::Kind::stream;
    return output;
  }
  throw_io_error("write", path, ELOOP);
}

void check_output(const std::filesystem::path& path) {
  const OutputPath output = resolve_output(path);
  if (output.kind == OutputPath::Kind::descriptor) {
    const int flags = check_posix(::fcntl(output.descriptor, F_GETFL), "write", path);
    if ((flags & O_ACCMODE) == O_RDONLY) throw_io_error("write", path, EBADF);
    return;
  }
  const bool is_there = mode_of(output.path) != 0;
  if (is_there) check_posix(::eaccess(output.path.c_str(), W_OK), "write", path);
  if (output.kind == OutputPath::Kind::stream) return;
  const std::filesystem::path folder = folder_of(output.path);
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    throw ConfigError(fmt::format("cannot write {}: there is no folder {}; make it first",
                                  path.string(), folder.string()));
  }
  // The new file is made beside the old one and replaces it.
  if (::eaccess(folder.c_str(), W_OK | X_OK) != 0) {
    throw_io_error(fmt::format("make {} in", output.path.filename().string()), folder, errno);
  }
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw IoError(fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
}

}  // namespace tpudist
