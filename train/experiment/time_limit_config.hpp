#pragma once

#include <optional>

namespace tpudist {

// `train.time_limit`.
struct TimeLimitConfig {
  // Seconds of wall-clock time that one training may take, counted anew when it is resumed; nothing:
  // no limit of its own.
  std::optional<double> seconds;
  bool slurm = true;  // whether the end of the Slurm job counts as well
};

}  // namespace tpudist
