#include "train/loop/step_boundary.hpp"

#include <limits>
#include <span>

namespace tpudist {

StepDecision agree(Communicator& world, StepDecision wanted, const std::exception_ptr& error) {
  constexpr std::int64_t kError = std::numeric_limits<std::int64_t>::max();
  std::int64_t agreed = error ? kError : static_cast<std::int64_t>(wanted);
  if (world.size() > 1) world.all_reduce(std::span(&agreed, 1), ReduceOp::max);
  if (agreed != kError) return static_cast<StepDecision>(agreed);
  run_on_all_ranks(world, [&] {
    if (error) std::rethrow_exception(error);
  });
  return StepDecision::stop;  // not reached: one rank had an error
}

}  // namespace tpudist
