#pragma once

#include <filesystem>

namespace tpudist {

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
