#pragma once

#include <optional>

namespace tpudist {

// `train.time_limit`.
struct TimeLimitConfig {
  // Seconds of wall-clock time for a training, starting again when it is resumed; nothing: no own
  // limit.
  std::optional<double> seconds;
  bool slurm = true;  // whether the end of the Slurm job is a limit too
};

}  // namespace tpudist
