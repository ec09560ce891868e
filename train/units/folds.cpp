#include "train/units/folds.hpp"

#include <algorithm>
#include <stdexcept>

#include "data/loading/selection.hpp"

namespace tpudist {
namespace {

std::vector<std::string> names_of(const Dataset& data) {
  std::vector<std::string> names;
  for (int g = 0; g < data.size(); ++g) names.push_back(data.graph(g).name);
  return names;
}

}  // namespace

FoldTable training_folds(const EnsembleConfig& ensemble, const DatasetOptions& training) {
  refuse_scored_graphs(training);
  if (!ensemble.holds_out()) return {};
  FoldRequest request{training.shards, training.collection, training.include,  training.exclude,
                      ensemble.folds,  ensemble.fold_seed,  ensemble.fold_file};
  if (training.second) {
    request.with_valid = true;
    request.include_valid = training.second->include;
    request.exclude_valid = training.second->exclude;
  }
  return split_into_folds(request);
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
  return hash_of_folds(folds, names_of(training));
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
