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

// A reader of bytes that nobody vouches for: run by libFuzzer (fuzzer.cpp), and on seeds and on some
// of their mutations by the tests (fuzz_test.cpp). See docs/testing.md.
struct FuzzTarget {
  std::string_view name;
  // Reads the bytes as the program would read a file of them. False where they are refused as they
  // should be; whatever else goes wrong gets out.
  bool (*read)(std::string_view bytes);
  // Sound files first, then hostile ones.
  std::vector<std::string> (*seeds)();
};

const std::vector<FuzzTarget>& fuzz_targets();

FuzzTarget npy_target();
FuzzTarget npz_target();
FuzzTarget hlo_proto_target();
FuzzTarget hlo_text_target();
FuzzTarget yaml_target();
FuzzTarget fold_file_target();
FuzzTarget safetensors_target();
FuzzTarget manifest_target();
FuzzTarget layout_configs_target();
FuzzTarget shard_target();
FuzzTarget checkpoint_target();

// Runs read(). False where it is refused by an Error of this kind: with one line, unless `lines`
// allows several. Throws std::logic_error where the Error is another one.
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
// Such a file of these bytes, in place of the one before.
std::filesystem::path input_file(std::string_view name, std::string_view bytes);

// The whole files below a folder of the source that end so, in the order of names; of at most this size.
std::vector<std::string> files_below(std::string_view folder, std::string_view ending,
                                     std::size_t largest = 8 << 10);

}  // namespace tpudist::test
