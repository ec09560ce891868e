#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "experiment/experiment.hpp"

namespace tpudist {

// The folds of the graphs that `training` (Experiment::training_data) selects; none (`folds` 0)
// when members hold nothing out. Here it is decided who trains on what: throws what
// refuse_scored_graphs and split_into_folds throw.
FoldTable training_folds(const EnsembleConfig& ensemble, const DatasetOptions& training);

// The fold of each graph of the data; empty without folds. Throws std::out_of_range if a graph has
// no fold.
std::vector<int> graph_folds(const FoldTable& folds, const Dataset& data);

// hash_of_folds of the training data, kept in checkpoints; nothing without folds.
std::optional<std::uint64_t> training_folds_hash(const FoldTable& folds, const Dataset& training);

// Folds without graphs of the training data: their members train on all of it.
std::vector<int> empty_folds(const FoldTable& folds, const Dataset& training);

}  // namespace tpudist
