#pragma once

#include <vector>

#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/slate_order.hpp"
#include "dist/communicator.hpp"
#include "train/experiment/experiment.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {

// What the slates of one graph cost a member in a training step, estimated from sample plans, in
// floating-point operations (UnitEstimate::step_work). Slates that share a plan share rows, so that
// each further one costs less than the first.
struct SlateCost {
  double first = 1;    // one slate of `batch.configs` configurations
  double further = 1;  // each further slate of the graph in the same plan
  double of(int slates) const { return slates > 0 ? first + (slates - 1) * further : 0; }
};

// The costs of all graphs of the training data. Collective: the ranks of `world` share the sample
// plans, and all of them get the same numbers to the bit, which decide the owners of units. Each
// graph's first slate is read and planned (with merged slates a few of them); of more than
// `most_samples` graphs so many are sampled, evenly over the sizes, and the others take the ratio
// of the sample before them to its nodes x configurations. Throws DataError or IoError.
std::vector<SlateCost> estimate_slate_costs(const Experiment& experiment, const Dataset& data,
                                            const UnitBuilder& units, const SlateOrder& order,
                                            ThreadPool& pool, Communicator& world,
                                            int most_samples = 256);

}  // namespace tpudist
