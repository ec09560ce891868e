#include "train/optimizer/optimizer.hpp"

#include <cmath>
#include <numbers>

namespace tpudist {
namespace {

std::int64_t share_of(double share, std::int64_t steps) {
  return std::llround(share * static_cast<double>(steps));
}

// The share of the current cycle that is done, after `step` of all steps of the cycles.
double cycle_done(std::int64_t step, std::int64_t steps, std::int64_t cycles) {
  if (step >= steps) return 1;
  return static_cast<double>(step * cycles % steps) / static_cast<double>(steps);
}

void read_multistep(ConfigNode& node, ScheduleConfig& config) {
  node.require("at");
  config.at = node.numbers("at", {}, {0, 1});
  config.factor = node.number("factor", config.factor, {0, 1});
  double last = 0;
  for (double share : config.at) {
    if (share <= last || share >= 1) {
      node.mistake("at", "must hold rising shares of all steps, above 0 and below 1");
      break;
    }
    last = share;
  }
}

}  // namespace

ScheduleConfig ScheduleConfig::read(ConfigNode node) {
  ScheduleConfig config;
  config.name = node.choice("name", config.name, {"constant", "multistep", "cosine"});
  if (config.name == "multistep") read_multistep(node, config);
  if (config.name == "cosine") {
    config.floor = node.number("floor", config.floor, {0, 1});
    config.cycles = node.integer("cycles", config.cycles, {1, 1'000'000});
  }
  config.warmup = node.number("warmup", config.warmup, {0, 1});
  if (config.warmup >= 1) node.mistake("warmup", "must be a share of all steps below 1");
  return config;
}

double ScheduleConfig::operator()(std::int64_t step, std::int64_t steps) const {
  const std::int64_t warm = share_of(warmup, steps);
  double result = 1;
  if (step < warm) result = static_cast<double>(step + 1) / static_cast<double>(warm);
  if (name == "multistep") {
    for (double share : at) {
      if (step >= share_of(share, steps)) result *= factor;
    }
  } else if (name == "cosine" && step >= warm && steps > warm) {
    const double done = cycle_done(step - warm, steps - warm, cycles);
    const double height = 0.5 * (1 + std::cos(std::numbers::pi * done));
    result = floor + (1 - floor) * height;
  }
  return result;
}

}  // namespace tpudist
