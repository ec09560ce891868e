#include "train/experiment/load_experiment.hpp"

#include <fmt/format.h>

#include <string_view>

#include "core/config/yaml_scalar.hpp"

namespace tpudist {

Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides) {
  ConfigDocument document = ConfigDocument::load(file, overrides);
  Experiment experiment = read_experiment(document);
  std::vector<std::string> absolute = overrides;
  const auto make_absolute = [&](std::string_view key, const std::filesystem::path& path) {
    if (path.empty() || path.is_absolute()) return;
    const auto place = std::filesystem::absolute(path).lexically_normal();
    absolute.push_back(fmt::format("{}={}", key, format_yaml_text(place.string())));
  };
  make_absolute("data.shards", experiment.data.shards);
  make_absolute("ensemble.fold_file", experiment.ensemble.fold_file);
  if (const std::string& dir = experiment.data.cache_dir; dir != "none" && dir != "auto")
    make_absolute("data.cache_dir", dir);
  if (absolute.size() == overrides.size()) return experiment;
  ConfigDocument again = ConfigDocument::load(file, absolute);
  return read_experiment(again);
}

}  // namespace tpudist
