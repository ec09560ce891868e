#include "train/units/training_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "data/loading/dataset.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

std::vector<std::string> names_of(const Dataset& data) {
  std::vector<std::string> names;
  for (int g = 0; g < data.size(); ++g) names.push_back(data.graph(g).name);
  return names;
}

}  // namespace

void refuse_scored_graphs(const DatasetOptions& training, const DataConfig& data) {
  if (!is_joined(training.collection)) return;
  const std::vector<GraphEntry> all = list_graphs(training.shards, training.collection);
  std::map<std::string, GraphEntry, std::less<>> trained;
  const auto train_on = [&](const std::string& split, const auto& patterns) {
    for (GraphEntry& graph : filter_graphs(all, split, patterns.include, patterns.exclude))
      trained.emplace(graph_of_id(graph.name), std::move(graph));
  };
  train_on(training.split, training);
  if (training.second) train_on(training.second->name, *training.second);
  for (const char* split : {"valid", "test"}) {
    if (training.second && training.second->name == split) continue;
    const DatasetOptions scored = data.evaluation(split);
    for (const GraphEntry& graph : filter_graphs(all, split, scored.include, scored.exclude)) {
      const auto found = trained.find(graph_of_id(graph.name));
      if (found == trained.end()) continue;
      const GraphEntry& own = found->second;
      throw ConfigError(
          fmt::format("{} of the split {} is trained on, but {} of the split {} is the same graph: "
                      "leave it out by data.exclude.{}{}",
                      own.name, own.split, graph.name, split, own.split,
                      std::string_view(split) == "valid" ? " or data.exclude.valid" : ""));
    }
  }
}

FoldTable training_folds(const EnsembleConfig& ensemble, const DatasetOptions& training) {
  if (!ensemble.holds_out()) return {};
  return split_into_folds(training, ensemble.folds, ensemble.fold_seed, ensemble.fold_file);
}

std::vector<int> graph_folds(const FoldTable& folds, const Dataset& data) {
  std::vector<int> result;
  if (folds.folds == 0) return result;
  for (const std::string& name : names_of(data)) {
    const FoldedGraph* graph = folds.find(name);
    if (!graph) throw std::out_of_range("no fold has the graph " + name);
    result.push_back(graph->fold);
  }
  return result;
}

std::optional<std::uint64_t> training_folds_hash(const FoldTable& folds, const Dataset& training) {
  if (folds.folds == 0) return std::nullopt;
  std::vector<std::string> names = names_of(training);
  const std::vector<std::string>& left_out = training.left_out();
  names.insert(names.end(), left_out.begin(), left_out.end());
  return hash_of_folds(folds, std::move(names));
}

std::vector<int> empty_folds(const FoldTable& folds, const Dataset& training) {
  const std::vector<int> used = graph_folds(folds, training);
  std::vector<int> empty;
  for (int fold = 0; fold < folds.folds; ++fold) {
    if (std::ranges::find(used, fold) == used.end()) empty.push_back(fold);
  }
  return empty;
}

}  // namespace tpudist
