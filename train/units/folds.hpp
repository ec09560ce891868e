#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/folds/fold_table.hpp"
#include "data/loading/dataset.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// The folds of the graphs that `training` (Experiment::training_data) selects; none (`folds` 0) when
// members hold nothing out. Throws what split_into_folds throws.
FoldTable training_folds(const EnsembleConfig& ensemble, const DatasetOptions& training);

// The fold of each graph of the data, empty where there are no folds. Throws std::out_of_range where
// the folds lack one.
std::vector<int> graph_folds(const FoldTable& folds, const Dataset& data);

// hash_of_folds of the training data, nothing where there are no folds: what a checkpoint keeps.
std::optional<std::uint64_t> training_folds_hash(const FoldTable& folds, const Dataset& training);

// Folds that hold none of the training data's graphs: their members train on all of it.
std::vector<int> empty_folds(const FoldTable& folds, const Dataset& training);

}  // namespace tpudist
