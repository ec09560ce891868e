#include "tests/fuzz/fuzz_target.hpp"

#include <algorithm>
#include <fstream>

#include "core/file_system.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> targets{
      npy_target(),   npz_target(),       hlo_proto_target(),   layout_configs_target(),
      yaml_target(),  fold_file_target(), safetensors_target(), manifest_target(),
      shard_target(), checkpoint_target()};
  return targets;
}

std::filesystem::path scratch_file(std::string_view name) {
  static const TempDir folder;
  return folder / name;
}

std::filesystem::path input_file(std::string_view name, std::string_view bytes) {
  std::filesystem::path path = scratch_file(name);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  return path;
}

std::vector<std::string> files_below(std::string_view folder, std::string_view ending,
                                     std::size_t largest) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_folder() / folder)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(ending) &&
        entry.file_size() <= largest)
      paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<std::string> files;
  for (const auto& path : paths) files.push_back(read_text_file(path));
  return files;
}

}  // namespace tpudist::test
