#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Where collections are joined, a graph may be of a split that is trained on in one of them, and of
// another split, on which the trained network is scored, in another one. Throws ConfigError where one
// of the graphs that `training` (Experiment::training_data) selects is so; and what list_graphs
// throws. Reads only the manifests.
void refuse_scored_graphs(const DatasetOptions& training, const DataConfig& data);

// The folds of the graphs that `training` selects; none (`folds` 0) when members hold nothing out.
// Throws what split_into_folds throws.
FoldTable training_folds(const EnsembleConfig& ensemble, const DatasetOptions& training);

// The fold of each graph of the data; empty without folds. Throws std::out_of_range if a graph has
// no fold.
std::vector<int> graph_folds(const FoldTable& folds, const Dataset& data);

// hash_of_folds of the training data, kept in checkpoints; nothing without folds. Graphs of which
// data.entropy_filter leaves no row are in it: they are scored like others.
std::optional<std::uint64_t> training_folds_hash(const FoldTable& folds, const Dataset& training);

// Folds without graphs of the training data: their members train on all of it.
std::vector<int> empty_folds(const FoldTable& folds, const Dataset& training);

}  // namespace tpudist
