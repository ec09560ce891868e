#include "train/loop/time_limit.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "dist/health/agreement.hpp"

namespace tpudist {
namespace {

constexpr double kBytesPerSecond = 50e6;
constexpr double kShortestCheckpoint = 0.1;  // seconds to assume at least
constexpr double kSlurmWarning = 6 * 60;     // seconds before the end of a Slurm job

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::optional<double> slurm_seconds_left(double now) {
  const char* text = std::getenv("SLURM_JOB_END_TIME");
  if (!text) return std::nullopt;
  std::int64_t end = 0;
  const auto [rest, error] = std::from_chars(text, text + std::strlen(text), end);
  if (error != std::errc{} || *rest != '\0' || static_cast<double>(end) <= now) return std::nullopt;
  return static_cast<double>(end) - now;
}

bool slurm_job_ends_soon() {
  return slurm_seconds_left(system_seconds()).value_or(kSlurmWarning) < kSlurmWarning;
}

TimeLimit::TimeLimit(const TimeLimitConfig& config, double checkpoint_bytes, Clock clock)
    : clock_(clock ? std::move(clock) : Clock(steady_seconds)),
      checkpoint_seconds_(std::max(checkpoint_bytes / kBytesPerSecond, kShortestCheckpoint)) {
  std::optional<double> left = config.seconds;
  if (config.slurm) {
    // The system clock is read once, so the limit does not change if that clock jumps later.
    if (const auto slurm = slurm_seconds_left(system_seconds()))
      left = left ? std::min(*left, *slurm) : *slurm;
  }
  if (left) end_ = clock_() + *left;
}

double TimeLimit::margin() const {
  return 1.2 * longest_step_ + 2 * checkpoint_seconds_;
}

bool TimeLimit::is_over() {
  if (!end_) return false;
  const double now = clock_();
  if (last_ && steps_ > 1) longest_step_ = std::max(longest_step_, now - *last_);
  last_ = now;
  ++steps_;
  return steps_ > 1 && now + margin() >= *end_;
}

void TimeLimit::wrote_checkpoint(double seconds) {
  const double before = measured_ ? checkpoint_seconds_ : kShortestCheckpoint;
  checkpoint_seconds_ = std::max(before, seconds);
  measured_ = true;
}

StepDecision agree(Communicator& world, StepDecision wanted, const std::exception_ptr& error,
                   std::uint64_t bits, std::string_view what) {
  constexpr std::int64_t kError = std::numeric_limits<std::int64_t>::max();
  const auto own = static_cast<std::int64_t>(bits);
  // The largest complement is the complement of the smallest number.
  std::int64_t agreed[] = {error ? kError : static_cast<std::int64_t>(wanted), own, ~own};
  if (world.size() > 1) world.all_reduce(std::span<std::int64_t>(agreed), ReduceOp::max);
  if (agreed[1] != ~agreed[2]) require_equal_on_all_ranks(world, bits, what);
  if (agreed[0] != kError) return static_cast<StepDecision>(agreed[0]);
  run_on_all_ranks(world, [&] {
    if (error) std::rethrow_exception(error);
  });
  return StepDecision::stop;  // not reached: one rank had an error
}

}  // namespace tpudist
