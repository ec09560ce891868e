#include "core/file_system.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "core/descriptor.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

class PosixFile : public WritableFile {
 public:
  PosixFile(const std::filesystem::path& path, Descriptor file)
      : path_(path), file_(std::move(file)) {}

  void write(std::span<const std::byte> bytes) override {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (const int error = write_all(file_, text)) throw_io_error("write", path_, error);
  }

  void sync() override {
    check_posix(uninterrupted([&] { return ::fsync(file_.get()); }), "sync", path_);
  }

  void close() override {
    if (const int error = file_.close()) throw_io_error("close", path_, error);
  }

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

class PosixFileSystem : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::filesystem::path& path) override {
    return std::make_unique<PosixFile>(path,
                                       open_file(path, O_WRONLY | O_CREAT | O_TRUNC, "create"));
  }

  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    check_posix(std::rename(from.c_str(), to.c_str()), "rename",
                from.string() + " to " + to.string());
  }

  void remove(const std::filesystem::path& path) override {
    check_posix(::unlink(path.c_str()), "remove", path);
  }

  void sync_file(const std::filesystem::path& path) override { sync_path(path, O_RDONLY); }

  void sync_directory(const std::filesystem::path& path) override {
    sync_path(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
  }

 private:
  static void sync_path(const std::filesystem::path& path, int flags) {
    const Descriptor file = open_file(path, flags);
    const int result = uninterrupted([&] { return ::fsync(file.get()); });
    // EINVAL: the file system has nothing to sync for a folder.
    if (result == -1 && !((flags & O_DIRECTORY) && errno == EINVAL))
      throw_io_error("sync", path, errno);
  }
};

constexpr std::size_t kLongestName = 200;  // NAME_MAX is 255

// "NAME.PID-COUNTER-RANDOM.tmp" beside `path`. The random part distinguishes processes of several
// machines, or of containers with the same process ids, on a shared file system.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  const std::string name = path.filename().string().substr(0, kLongestName);
  const std::string unique =
      fmt::format("{}.{}-{}-{:08x}.tmp", name, ::getpid(), counter++, std::random_device{}());
  return path.parent_path() / unique;
}

// Writes to a path that is not a file, without rename and sync.
void write_through(const OutputPath& output, std::span<const std::byte> bytes, FileSystem& files) {
  std::unique_ptr<WritableFile> file;
  if (output.kind == OutputPath::Kind::descriptor) {
    std::fflush(stdout);  // earlier output comes first
    const int copy = ::fcntl(output.descriptor, F_DUPFD_CLOEXEC, 0);
    file = std::make_unique<PosixFile>(output.path,
                                       Descriptor(check_posix(copy, "create", output.path)));
  } else {
    file = files.create(output.path);
  }
  file->write(bytes);
  file->close();
}

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

bool is_temporary_name(std::string_view name, std::string_view file) {
  return name.starts_with(fmt::format("{}.", file.substr(0, kLongestName))) &&
         name.ends_with(".tmp");
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           FileSystem& files) {
  const OutputPath output = resolve_output(path);
  if (output.kind != OutputPath::Kind::file) return write_through(output, bytes, files);
  TemporaryFile temporary(output.path, files);
  const auto file = files.create(temporary.path());
  file->write(bytes);
  file->sync();
  file->close();
  temporary.put_in_place();
  spdlog::debug("wrote {} ({})", output.path.string(), format_bytes(bytes.size()));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text,
                           FileSystem& files) {
  write_file_atomically(path, std::as_bytes(std::span(text)), files);
}

TemporaryFile::TemporaryFile(const std::filesystem::path& final_path, FileSystem& files)
    : files_(files) {
  OutputPath output = resolve_output(final_path);
  if (output.kind != OutputPath::Kind::file) {
    throw IoError(
        fmt::format("cannot write {}: it is no regular file, and this kind of output "
                    "needs one",
                    final_path.string()));
  }
  final_ = std::move(output.path);
  temporary_ = temporary_name(final_);
}

TemporaryFile::~TemporaryFile() {
  if (committed_) return;
  try {
    files_.remove(temporary_);
  } catch (...) {  // most often it was never made
  }
}

void TemporaryFile::commit() {
  if (committed_) return;
  files_.sync_file(temporary_);
  put_in_place();
}

void TemporaryFile::put_in_place() {
  files_.rename(temporary_, final_);
  committed_ = true;
  files_.sync_directory(final_.parent_path());
}

std::string read_text_file(const std::filesystem::path& path, std::size_t limit) {
  const Descriptor file = open_file(path, O_RDONLY);
  std::string text;
  for (std::size_t used = 0;;) {
    text.resize(std::max<std::size_t>(used + used / 2, used + (std::size_t{1} << 16)));
    const auto read = [&] { return ::read(file.get(), text.data() + used, text.size() - used); };
    const ssize_t count = check_posix(uninterrupted(read), "read", path);
    used += static_cast<std::size_t>(count);
    if (used > limit)
      throw IoError(fmt::format("{} is larger than {} bytes", path.string(), limit));
    if (count > 0) continue;
    text.resize(used);
    return text;
  }
}

void append_to_file(const std::filesystem::path& path, std::string_view text) {
  Descriptor file = open_file(path, O_WRONLY | O_APPEND | O_CREAT, "write");
  struct stat before {};
  const bool regular = ::fstat(file.get(), &before) == 0 && S_ISREG(before.st_mode);
  const int error = write_all(file, text);
  const auto cut = [&] { return ::ftruncate(file.get(), before.st_size); };
  // The error of the write is reported even if the file cannot be cut.
  if (error != 0 && regular) uninterrupted(cut);
  const int at_end = file.close();
  if (error != 0 || at_end != 0) throw_io_error("write", path, error != 0 ? error : at_end);
}

namespace fs = std::filesystem;

std::string near_path(const fs::path& wanted,
                      const std::function<bool(const fs::directory_entry&)>& accepts,
                      const std::vector<fs::path>& homes) {
  std::vector<fs::path> folders{wanted.parent_path()};
  if (folders[0].empty()) folders.insert(folders.end(), homes.begin(), homes.end());
  std::vector<std::string> names, paths;
  for (const fs::path& folder : folders) {
    std::error_code error;
    fs::directory_iterator entries(folder.empty() ? "." : folder, error);
    for (; !error && entries != end(entries); entries.increment(error)) {
      if (!accepts(*entries)) continue;
      const fs::path path = folder / entries->path().filename();
      names.push_back((is_yaml(*entries) ? path.stem() : path.filename()).string());
      paths.push_back(path.string());
    }
  }
  const fs::path name = wanted.extension() == ".yaml" ? wanted.stem() : wanted.filename();
  const auto at = std::ranges::find(names, nearest_of(name.string(), names));
  if (at == names.end()) return "";
  return "; did you mean " + paths[static_cast<std::size_t>(at - names.begin())] + "?";
}

bool is_yaml(const fs::directory_entry& entry) {
  return entry.path().extension() == ".yaml";
}

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
  const auto number = number_of<int>(path.filename().string());
  return number >= 0 ? number : std::nullopt;
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
