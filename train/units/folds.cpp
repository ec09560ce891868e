#include "train/units/folds.hpp"

#include "data/schema/model_family.hpp"

namespace tpudist {

std::vector<int> graph_folds(const Experiment& experiment, const Dataset& training) {
  if (experiment.ensemble.folds == 0) return {};
  std::vector<std::string> names;
  for (int g = 0; g < training.size(); ++g) names.push_back(training.graph(g).name);
  return assign_folds(names, std::vector<double>(names.size(), 1.0), experiment.ensemble.folds,
                      experiment.order_seed);
}

}  // namespace tpudist
