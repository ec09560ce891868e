#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace tpudist::test {

// A reader of untrusted bytes. libFuzzer runs it (fuzzer.cpp), and so do the tests, on seeds and
// some mutations (fuzz_test.cpp). See docs/testing.md.
struct FuzzTarget {
  std::string_view name;
  // Reads the bytes as the program reads a file. Returns false if they are properly refused; throws
  // any other error.
  bool (*read)(std::string_view bytes);
  // Sound files first, then hostile ones.
  std::vector<std::string> (*seeds)();
};

const std::vector<FuzzTarget>& fuzz_targets();

FuzzTarget npy_target();
FuzzTarget npz_target();
FuzzTarget hlo_proto_target();
FuzzTarget yaml_target();
FuzzTarget fold_file_target();
FuzzTarget safetensors_target();
FuzzTarget manifest_target();
FuzzTarget layout_configs_target();
FuzzTarget shard_target();
FuzzTarget checkpoint_target();

// Runs read(). Returns false if it throws an Error of this kind, of one line unless `lines` allows
// several. Throws std::logic_error for any other Error.
template <typename Read>
bool accepts(const Read& read, ErrorKind kind = ErrorKind::data, bool lines = false) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    const std::string_view what = error.what();
    if (error.kind() != kind || what.empty() ||
        (!lines && what.find('\n') != std::string_view::npos)) {
      throw std::logic_error(fmt::format("refused with exit code {}, not {} and one line: {}",
                                         error.exit_code(), static_cast<int>(kind), what));
    }
    return false;
  }
}

// A path in a folder of this process that is removed at its end.
std::filesystem::path scratch_file(std::string_view name);
// A scratch file with these bytes; replaces the previous one.
std::filesystem::path input_file(std::string_view name, std::string_view bytes);

// The content of files with this ending below a source folder, by name, up to this size.
std::vector<std::string> files_below(std::string_view folder, std::string_view ending,
                                     std::size_t largest = 8 << 10);

}  // namespace tpudist::test
