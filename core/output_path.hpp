#pragma once

#include <filesystem>

namespace tpudist {

// Where the bytes of an output really go.
struct OutputPath {
  enum class Kind {
    file,        // a regular file, or none yet: a new file takes its place by rename
    stream,      // a device, FIFO or the like: it is opened and written
    descriptor,  // /dev/stdout, /dev/fd/N: an open descriptor of this process
  };
  Kind kind = Kind::file;
  std::filesystem::path path;  // with symbolic links of the last component followed
  int descriptor = -1;         // Kind::descriptor only
};

// Follows symbolic links, so that an output is written to what a link names and the link stays; the
// target of the last link need not exist. Throws IoError when `path` is not the name of a file or
// names a folder.
OutputPath resolve_output(const std::filesystem::path& path);

// Throws IoError unless `path` can be written as things stand: it is the name of a file, its folder
// is there and may be written, what is there already is no folder and not protected. Changes
// nothing. To be asked before long work whose result goes to `path`.
void check_output(const std::filesystem::path& path);

}  // namespace tpudist
