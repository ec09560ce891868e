#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// The graphs that the members of a run were trained on: by themselves, or in what they began from
// (train.init_from). By names without collection, [M] whether the member was trained on it.
struct TrainedGraphs {
  std::map<std::string, std::vector<bool>, std::less<>> members;

  void add(std::string_view id, const std::vector<bool>& trained);
  bool knows(std::string_view id, std::size_t member) const;
  // [M] the families of what the member was trained on.
  std::vector<std::set<std::string>> families() const;
};

void write_trained_graphs(const std::filesystem::path& path, const TrainedGraphs& graphs);
// Nothing where there is no such file: the run is of an older version. Throws IoError, DataError.
std::optional<TrainedGraphs> read_trained_graphs(const std::filesystem::path& path);

// "2 of 5 model families of the validation graphs are also trained on (bert, resnet): ...", or "".
std::string seen_families_text(const std::set<std::string>& seen, std::size_t families,
                               std::string_view scored);

// "bert, resnet, ..."
std::string first_of(std::span<const std::string> names, std::size_t most);

}  // namespace tpudist
