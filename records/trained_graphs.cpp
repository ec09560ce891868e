#include "records/trained_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json_fault.hpp"
#include "core/json_number.hpp"
#include "core/text.hpp"
#include "schema/merged_collection.hpp"
#include "schema/model_family.hpp"

namespace tpudist {

void TrainedGraphs::add(std::string_view id, const std::vector<bool>& trained) {
  std::vector<bool>& own = members[std::string(graph_of_id(id))];
  own.resize(std::max(own.size(), trained.size()));
  for (std::size_t m = 0; m < trained.size(); ++m) own[m] = own[m] || trained[m];
}

bool TrainedGraphs::knows(std::string_view id, std::size_t member) const {
  const auto found = members.find(graph_of_id(id));
  return found != members.end() && member < found->second.size() && found->second[member];
}

std::vector<std::set<std::string>> TrainedGraphs::families() const {
  std::vector<std::set<std::string>> families;
  for (const auto& [name, trained] : members) {
    families.resize(std::max(families.size(), trained.size()));
    for (std::size_t m = 0; m < trained.size(); ++m) {
      if (trained[m]) families[m].insert(model_family(name));
    }
  }
  return families;
}

void write_trained_graphs(const std::filesystem::path& path, const TrainedGraphs& graphs) {
  write_file_atomically(path, json_text(nlohmann::json(graphs.members), 0) + "\n");
}

std::optional<TrainedGraphs> read_trained_graphs(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string text = read_text_file(path);
  try {
    TrainedGraphs graphs;
    for (const auto& [name, trained] : nlohmann::json::parse(text).items())
      graphs.members[name] = trained.get<std::vector<bool>>();
    return graphs;
  } catch (const std::exception& error) {
    throw DataError(fmt::format(
        "{}: is damaged ({}); remove it, and folds.yaml and the shards tell what was trained on",
        path.string(), json_fault(error.what())));
  }
}

std::string first_of(std::span<const std::string> names, std::size_t most) {
  return join(names.first(std::min(most, names.size())), ", ") +
         (names.size() > most ? ", ..." : "");
}

std::string seen_families_text(const std::set<std::string>& seen, std::size_t families,
                               std::string_view scored) {
  if (seen.empty()) return {};
  return fmt::format(
      "{} of {} model families of the {} graphs are also trained on ({}): scores on them and "
      "intervals for other families are not for families that were never seen; scores out of fold "
      "are (ensemble.folds, with `fold` in ensemble.vary)",
      seen.size(), families, scored, first_of(std::vector(seen.begin(), seen.end()), 5));
}

}  // namespace tpudist
