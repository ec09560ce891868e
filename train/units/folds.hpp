#pragma once

#include <vector>

#include "data/loading/dataset.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// The fold of each graph of the training data by model family, empty when the experiment has no
// folds. EnsembleConfig::held_out_fold says which one a member holds out. Throws ConfigError when
// there are fewer families than folds.
std::vector<int> graph_folds(const Experiment& experiment, const Dataset& training);

}  // namespace tpudist
