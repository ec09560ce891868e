#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// A file being written. `sync` and `close` throw IoError; the destructor closes without an error.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;
  virtual void close() = 0;
};

// The operations that make a file durable. An interface, so that tests can make any of them fail.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<WritableFile> create(const std::filesystem::path& path) = 0;
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void remove(const std::filesystem::path& path) = 0;
  virtual void sync_file(const std::filesystem::path& path) = 0;  // fsync of an existing file
  virtual void sync_directory(const std::filesystem::path& path) = 0;
};

// The real file system (POSIX). Errors have the path and strerror.
FileSystem& posix_file_system();

// Writes `bytes` to `path` so that a reader, or a crash, sees either the old file or the whole new
// one: temporary name in the same folder, fsync, rename, fsync of the folder. On failure the
// temporary file is removed and the old file is unchanged. One exception: if the last step, the
// folder's fsync, fails, the new file is in place but may not survive a power cut. If `path` is a
// symbolic link, the link stays and its target is replaced or created. A `path` that is not a
// regular file, such as a device or a FIFO, is opened and written.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           FileSystem& files = posix_file_system());
void write_file_atomically(const std::filesystem::path& path, std::string_view text,
                           FileSystem& files = posix_file_system());

// Whether `name` is a temporary file that these writers made for `file`. A process that is killed
// while writing leaves one.
bool is_temporary_name(std::string_view name, std::string_view file);

// A file that another library writes under a temporary name. `commit` makes it durable and renames
// it; without `commit` the destructor removes it. If `final_path` is a symbolic link, the temporary
// file lies beside the link's target. Throws IoError when `final_path` is a folder, a device or
// similar.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& final_path,
                         FileSystem& files = posix_file_system());
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const { return temporary_; }  // write here
  void commit();

 private:
  friend void write_file_atomically(const std::filesystem::path&, std::span<const std::byte>,
                                    FileSystem&);
  void put_in_place();  // rename and fsync of the folder

  std::filesystem::path final_, temporary_;
  FileSystem& files_;
  bool committed_ = false;
};

// The whole content. Throws IoError, also when the file has more than `limit` bytes.
std::string read_text_file(const std::filesystem::path& path,
                           std::size_t limit = std::numeric_limits<std::size_t>::max());

// Appends to a file, which is created if it does not exist. On failure throws IoError, and cuts a
// regular file back to its old length if the system allows it.
void append_to_file(const std::filesystem::path& path, std::string_view text);

// "; did you mean PATH?", for an error about the missing `wanted`. PATH is the accepted entry with
// the nearest name (nearest_of) in the folder of `wanted`, or also in `homes` if `wanted` is a mere
// name. "" without such an entry.
std::string near_path(const std::filesystem::path& wanted,
                      const std::function<bool(const std::filesystem::directory_entry&)>& accepts,
                      const std::vector<std::filesystem::path>& homes = {});

// An `accepts` for near_path.
bool is_yaml(const std::filesystem::directory_entry& entry);

// The file, stream or descriptor to which an output path leads.
struct OutputPath {
  enum class Kind {
    file,        // a regular file or a new one: written under another name, then renamed
    stream,      // a device, FIFO or similar: opened and written
    descriptor,  // /dev/stdout, /dev/fd/N: an open descriptor of this process
  };
  Kind kind = Kind::file;
  std::filesystem::path path;  // with symbolic links of the last component followed
  int descriptor = -1;         // Kind::descriptor only
};

// Follows symbolic links, so that the target of a link is written and the link stays; the target of
// the last link need not exist. Throws IoError when `path` has no file name or names a folder.
OutputPath resolve_output(const std::filesystem::path& path);

// Throws IoError unless `path` can be written now: it has a file name, its folder exists and is
// writable, and an existing `path` is neither a folder nor write-protected. Changes nothing. Call
// it before long work whose result goes to `path`.
void check_output(const std::filesystem::path& path);

// Makes a folder for outputs, and missing parents, unless it exists. Throws IoError.
void make_folder(const std::filesystem::path& path);

}  // namespace tpudist
