#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.hpp"

namespace tpudist {

// `schedule:` of an experiment file: the factor of the learning rate over the steps.
struct ScheduleConfig {
  std::string name = "constant";  // constant, multistep or cosine
  // Multistep: shares of all steps at which the rate falls, ascending, in (0, 1).
  std::vector<double> at;
  double factor = 0.1;  // multistep: by this factor each time
  double warmup = 0;    // share of all steps over which the rate rises linearly, in [0, 1)
  double floor = 0;     // cosine: final factor
  static ScheduleConfig read(ConfigNode node);

  // Factor of the rate for step `step` (from 0) of `steps`; shares of `steps` are rounded to whole
  // steps. The w steps of the warm-up have the factors 1/w, 2/w, ..., 1 times the schedule's own.
  // The cosine falls from 1 after the warm-up to `floor`, which it would reach one step after the
  // last (Loshchilov & Hutter, "SGDR", 2017, without restarts).
  double operator()(std::int64_t step, std::int64_t steps) const;
};

}  // namespace tpudist
