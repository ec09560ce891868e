#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Throws ConfigError when a graph that `training` (Experiment::training_data) selects is also
// scored: if collections are joined, a graph may be in a training split of one collection and in a
// scored split of another. Throws what list_graphs throws. Reads only the manifests.
void refuse_scored_graphs(const DatasetOptions& training, const DataConfig& data);

// The folds of the graphs that `training` selects; none (`folds` 0) when members hold nothing out.
// Throws what split_into_folds throws.
FoldTable training_folds(const EnsembleConfig& ensemble, const DatasetOptions& training);

// The fold of each graph; empty without folds. Throws std::out_of_range if a graph has no fold.
std::vector<int> graph_folds(const FoldTable& folds, const Dataset& data);

// hash_of_folds of the training data, kept in checkpoints; nothing without folds. Includes graphs
// without rows after data.entropy_filter, because they are scored like other graphs.
std::optional<std::uint64_t> training_folds_hash(const FoldTable& folds, const Dataset& training);

// Folds without graphs of the training data. The members of such a fold train on all graphs.
std::vector<int> empty_folds(const FoldTable& folds, const Dataset& training);

}  // namespace tpudist
