#include "data/convert/conversion_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "data/convert/source_npz.hpp"
#include "data/schema/collection_folders.hpp"
#include "data/shards/shard_file.hpp"

namespace tpudist {
namespace {

// Throws for a graph name that cannot be a CSV field, a table line and a JSON key.
void require_usable_name(const std::filesystem::path& file) {
  const std::string name = file.stem().string();
  if (is_graph_name(name) && name.find_first_of(",\"") == name.npos) return;
  throw ConfigError(fmt::format(
      "{:?}: the file's name is the graph's, and must be UTF-8 without commas, double quotes and "
      "control characters: rename it",
      file.string()));
}

std::vector<std::filesystem::path> source_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return files;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (!is_source(entry.path())) continue;
      if (entry.is_symlink() && !entry.exists(error))
        throw IoError(fmt::format(
            "{}: a link to a file that is not there ({}): remove it, or "
            "mount what it points to",
            entry.path().string(), std::filesystem::read_symlink(entry.path()).string()));
      if (!entry.is_regular_file()) continue;
      require_usable_name(entry.path());
      files.push_back(entry.path());
    }
  } catch (const std::filesystem::filesystem_error& e) {
    throw IoError(fmt::format("cannot list {}: {}", folder.string(), e.code().message()));
  }
  std::ranges::sort(files);
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i - 1].stem() == files[i].stem())
      throw ConfigError(fmt::format("{} and {} would be the same graph: remove one of them",
                                    files[i - 1].string(), files[i].filename().string()));
  }
  return files;
}

}  // namespace

std::vector<PlannedShard> plan_shards(const std::filesystem::path& npz_root,
                                      const Collection& collection) {
  const std::size_t graphs_per_shard = collection.is_tile() ? 64 : 1;
  std::vector<PlannedShard> plan;
  for (const std::string_view split : kSplits) {
    const auto files =
        source_files(std::filesystem::absolute(npz_root) / collection.folder() / split);
    std::size_t number = 0;
    for (std::size_t begin = 0, end; begin < files.size(); begin = end) {
      end = begin + 1;
      while (is_npz(files[begin]) && end < std::min(files.size(), begin + graphs_per_shard) &&
             is_npz(files[end]))
        ++end;
      PlannedShard shard;
      shard.split = split;
      shard.file = fmt::format("{}/shard-{:05}.h5", split, number++);
      shard.sources.assign(files.begin() + static_cast<std::ptrdiff_t>(begin),
                           files.begin() + static_cast<std::ptrdiff_t>(end));
      for (const auto& file : shard.sources) {
        std::error_code gone;
        const std::uintmax_t bytes = std::filesystem::file_size(file, gone);
        if (!gone) shard.source_bytes += bytes;
      }
      plan.push_back(std::move(shard));
    }
  }
  return plan;
}

std::string second_name(const std::string& file) {
  return file.substr(0, file.size() - 3) + "b.h5";
}

bool is_shard_name(std::string_view name) {
  return name.starts_with("shard-") &&
         name.find_first_not_of("0123456789b", 6) == name.find(".h5") &&
         (name.ends_with(".h5") || name.ends_with(".tmp"));
}

}  // namespace tpudist
