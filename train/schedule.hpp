#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.hpp"

namespace tpudist {

// `schedule:` of an experiment file: the learning rate's factor over the steps.
struct ScheduleConfig {
  std::string name = "constant";  // constant, multistep or cosine
  std::vector<double> at;         // multistep: shares of all steps at which the rate falls, rising, in (0, 1)
  double factor = 0.1;            // multistep: by this factor each time
  double warmup = 0;              // share of all steps over which the rate rises linearly from 0
  double floor = 0;               // cosine: last factor
  static ScheduleConfig read(ConfigNode node);

  // Factor of the rate for step `step` (from 0) of `steps`.
  double operator()(std::int64_t step, std::int64_t steps) const;
};

}  // namespace tpudist
