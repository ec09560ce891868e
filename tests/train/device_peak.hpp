#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "models/operators/device_copies.hpp"
#include "tests/models/memory_counter.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {

// The most bytes that steps from `first` to before `end` of a training on the emulated device hold
// of it: with the plans that train.prefetch keeps ready, without the staging memory of copies.
inline std::int64_t counted_peak(const TrainingSetup& setup, JobContext& context,
                                 std::int64_t first, std::int64_t end) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1} << 17}) {  // makes staging memory
    const std::vector<char> values(bytes);
    const HostPart part{values.data(), 0, bytes};
    const std::shared_ptr<void> to = setup.network.device()->allocate(bytes);
    setup.network.device()->upload(std::span(&part, 1), bytes, to.get());
  }
  MemoryCounter memory;
  TrainingState state(setup);
  state.initialise(setup.experiment, setup.network);
  TrainingStep step(setup.experiment, setup.network, context);
  const StepBuilder builder = setup.steps_of(0);
  std::deque<StepWork> ready;
  std::int64_t peak = 0;
  for (std::int64_t i = first; i < end; ++i) {
    while (std::ssize(ready) <= setup.experiment.train.prefetch)
      ready.push_back(builder.build(i + std::ssize(ready)));
    memory.forget_peak();  // tensors of the host that planning has made
    step.run(ready.front(), state);
    peak = std::max(peak, memory.peak());
    ready.pop_front();
  }
  return peak;
}

}  // namespace tpudist::test
