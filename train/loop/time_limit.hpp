#pragma once

#include <functional>
#include <optional>

#include "train/experiment/time_limit_config.hpp"

namespace tpudist {

// Says when to stop so that a step and a checkpoint still fit into the time that is left. How long
// they take is measured on the way: steps with the evaluations and checkpoints in them, but for the
// first one, which warms up. Each rank measures by itself, so what they find must be agreed on.
class TimeLimit {
 public:
  // What the clock says, in seconds; for tests.
  using Clock = std::function<double()>;

  // The time counts from here on. `checkpoint_bytes`: until a checkpoint was written, this many are
  // reckoned at 50 MB/s.
  TimeLimit(const TimeLimitConfig& config, double checkpoint_bytes, Clock clock = {});

  // Asked before each step, and before each piece of work behind the last one. Whether there is no
  // time for it; never before the first, so that a run gets on however short its time is.
  bool is_over();
  // A checkpoint took so long.
  void wrote_checkpoint(double seconds);

  // Seconds that are left; nothing without a limit.
  std::optional<double> left() const;

 private:
  double margin() const;

  Clock clock_;
  std::optional<double> end_;
  std::optional<double> last_;  // when the last step began
  int steps_ = 0;               // that have begun
  double longest_step_ = 0, checkpoint_seconds_;
  bool measured_ = false;  // whether a checkpoint was written
};

// Seconds until the Slurm job ends that this process belongs to, as SLURM_JOB_END_TIME says (seconds
// since 1970); `now` likewise. Nothing outside of Slurm, and for what is no time to come.
std::optional<double> slurm_seconds_left(double now);

}  // namespace tpudist
