#pragma once

#include <vector>

#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/slate_order.hpp"
#include "dist/collectives/communicator.hpp"
#include "experiment/experiment.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {

// Estimated cost of one graph's slates for one member in a training step, from sample plans, in
// floating-point operations (UnitEstimate::step_work). Slates in one plan share rows, so each
// further slate costs less than the first.
struct SlateCost {
  double first = 1;    // one slate of `batch.configs` configurations
  double further = 1;  // each further slate of the graph in the same plan
  double of(int slates) const { return slates > 0 ? first + (slates - 1) * further : 0; }
};

// The costs of all graphs of the training data. Collective: the ranks of `world` share the sample
// plans, and all get the same numbers to the bit, since they determine the owners of units. Each
// graph's first slate is read and planned (with merged slates a few of them). If there are more
// than `most_samples` graphs, that many are sampled, evenly over the sizes; for the others cost /
// (nodes x configurations) is that of the sample before them. Throws DataError or IoError.
std::vector<SlateCost> estimate_slate_costs(const Experiment& experiment, const Dataset& data,
                                            const UnitBuilder& units, const SlateOrder& order,
                                            ThreadPool& pool, Communicator& world,
                                            int most_samples = 256);

}  // namespace tpudist
