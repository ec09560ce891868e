#include "models/network/training_floats.hpp"

#include <algorithm>

#include "models/inputs/encoder.hpp"
#include "models/plans/plan_cost.hpp"

namespace tpudist {

double training_floats(const NetworkConfig& config, const FeatureSchema& schema, const Plan& plan,
                       bool recompute) {
  if (!recompute) return 2 * plan_cost(plan, config.work(schema)).states;
  const auto floats = [&](std::size_t depth, std::int64_t channels) {
    return static_cast<double>(plan.rows(depth) * channels);
  };
  std::size_t depth = 0;
  double kept = floats(0, Encoder(config.encoder, schema).channels()), largest = 0;
  const auto& blocks = config.blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    NetworkWork own;
    blocks[i]->add_work(own);
    double inside = 0;
    for (std::size_t step = 0; step < own.steps.size(); ++step)
      inside += floats(depth + step, own.steps[step].floats);
    largest = std::max(largest, inside);
    depth += own.steps.size() - 1;
    if (config.is_composed() || i % 2 == 1 || i + 1 == blocks.size())
      kept += floats(depth, blocks[i]->channels());
  }
  return kept + 2 * largest;
}

}  // namespace tpudist
