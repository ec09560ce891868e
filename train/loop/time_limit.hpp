#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>

#include "dist/collectives/communicator.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Decides when to stop so that a step and a checkpoint still fit into the remaining time, by
// measured durations. A step includes its evaluations and checkpoints; the first step, a warm-up,
// is excluded. Each rank measures for itself, so ranks must agree on the result.
class TimeLimit {
 public:
  // Time in seconds; for tests.
  using Clock = std::function<double()>;

  // The time starts now. `checkpoint_bytes`: size to assume, at 50 MB/s, until a checkpoint has
  // been written.
  TimeLimit(const TimeLimitConfig& config, double checkpoint_bytes, Clock clock = {});

  // Whether the time is too short for the next piece of work. Call before each step, and before
  // each piece of work after the last step. Never true before the first step, so that a run makes
  // progress even in a very short time.
  bool is_over();
  // Reports that a checkpoint took `seconds`.
  void wrote_checkpoint(double seconds);

 private:
  double margin() const;

  Clock clock_;
  std::optional<double> end_;
  std::optional<double> last_;  // when the last step began
  int steps_ = 0;               // number of started steps
  double longest_step_ = 0, checkpoint_seconds_;
  bool measured_ = false;  // whether a checkpoint was written
};

// Seconds until this process's Slurm job ends, from SLURM_JOB_END_TIME (seconds since 1970, like
// `now`). Nothing outside of Slurm, and if the value is no future time.
std::optional<double> slurm_seconds_left(double now);

// Whether the Slurm job ends within 6 minutes, so that a request to stop is its warning: the
// scripts of slurm/ send the request five minutes before the end, and Slurm may be a minute early.
bool slurm_job_ends_soon();

// The wish of a rank between two steps. The largest value wins.
enum class StepDecision : std::int64_t { go_on, out_of_time, stop };

// The decision of all ranks, by one small exchange. Throws on every rank when a rank has an error
// (not null), so that no rank waits in the step for a rank that does not come. Throws too, as
// require_equal_on_all_ranks, unless `bits`, named by `what`, are the same on all ranks.
StepDecision agree(Communicator& world, StepDecision wanted, const std::exception_ptr& error,
                   std::uint64_t bits = 0, std::string_view what = {});

}  // namespace tpudist
