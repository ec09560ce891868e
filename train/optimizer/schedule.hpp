#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.hpp"

namespace tpudist {

// `schedule:` of an experiment file: the factor of the learning rate over the steps.
struct ScheduleConfig {
  std::string name = "constant";  // constant, multistep, cosine or triangular
  // Multistep: shares of all steps at which the rate falls, ascending, in (0, 1).
  std::vector<double> at;
  double factor = 0.1;  // multistep: by this factor each time
  double warmup = 0;    // share of all steps over which the rate rises linearly, in [0, 1)
  double floor = 0;     // cosine, triangular: the least factor
  // Cosine, triangular: so many equal parts of the steps after the warm-up, each of them begins anew.
  std::int64_t cycles = 1;
  static ScheduleConfig read(ConfigNode node);

  // Factor of the rate for step `step` (from 0) of `steps`; shares of `steps` are rounded to whole
  // steps. The w steps of the warm-up have the factors 1/w, 2/w, ..., 1 times the schedule's own.
  // The cosine falls from 1 after the warm-up to `floor`, which it would reach one step after the
  // last (Loshchilov & Hutter, "SGDR", 2017). A triangle rises from `floor` to 1 and falls again, in
  // lines (Smith, "Cyclical learning rates for training neural networks", 2017).
  double operator()(std::int64_t step, std::int64_t steps) const;
};

}  // namespace tpudist
