// What a training step would ask of a GPU: launches with their operations and bytes, copies and
// waits. It trains on the emulated device, LibTorch's tensors on the CPU in a device's place, so it
// needs no GPU and tells no time. Prints the counts of the second step, and the memory of the largest
// of the first 20 steps beside the estimate that `train` goes by.
//   step_counts experiments/xla.yaml data.shards=tpudist-data batch.slates=4
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/device/device_backend.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/executor.hpp"
#include "tests/models/launch_counter.hpp"
#include "tests/train/device_peak.hpp"
#include "train/loop/forecast.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// Stands in for the one of models/network: objects come before libraries when a program is linked.
DeviceContext make_device_context(int device_index, Precision) {
  if (device_index < 0) return {};
  return {at::kCPU, make_device_backend};
}

namespace {

void print_work(const std::map<std::string, test::LaunchWork>& by_name) {
  for (const auto& [name, work] : by_name)
    fmt::print("{:7} {:9.3f} GFLOP {:9.1f} MB  {}\n", work.launches, 1e-9 * work.operations,
               1e-6 * work.bytes, name);
}

void print_counts(const Experiment& experiment) {
  const std::unique_ptr<Communicator> self = make_self_communicator();
  ThreadPool pool(2, use_one_thread_per_worker);
  use_one_thread_per_worker();
  NoProgress progress;
  NodeTopology topology;
  topology.device = 0;
  JobContext context{*self, pool, topology, progress};
  const TrainingSetup setup(experiment, experiment.training_data(), pool, 0, 1, *self);
  TrainingState state(setup);
  state.initialise(experiment, setup.network);
  TrainingStep step(experiment, setup.network, context);
  const StepBuilder builder = setup.steps_of(0);
  for (int i = 0; i < 2; ++i) {
    const CopyCounts before = setup.network.copies();
    const StepWork work = builder.build(i);
    const CopyCounts built = setup.network.copies();
    const test::LaunchCounter counter;
    step.run(work, state);
    const CopyCounts after = setup.network.copies();
    if (i == 0) continue;
    fmt::print("units {}, passes {}\n", work.batch.units(),
               work.joined.empty() ? work.passes.size() : work.joined.size());
    fmt::print("launches {}: {} own kernels, {} of ATen\n", counter.launches(),
               counter.own_kernels(), counter.aten_operations());
    print_work(counter.of_aten());
    print_work(counter.of_own_kernels());
    fmt::print("copies to the device {}, {:.2f} MB, of these units {}, {:.2f} MB\n",
               after.uploads - before.uploads,
               1e-6 * static_cast<double>(after.uploaded_bytes - before.uploaded_bytes),
               built.uploads - before.uploads,
               1e-6 * static_cast<double>(built.uploaded_bytes - before.uploaded_bytes));
    fmt::print("copies to the host {}, {:.2f} MB\n", after.downloads - before.downloads,
               1e-6 * static_cast<double>(after.downloaded_bytes - before.downloaded_bytes));
    fmt::print("waits {}, allocations of page-locked memory {}\n", after.waits - before.waits,
               after.page_locked - before.page_locked);
  }
  const DeviceBytes bytes = device_bytes(setup, 1);
  const std::int64_t largest = largest_step(setup, setup.planner).step;
  const auto estimate = static_cast<double>(bytes.total() - bytes.workspaces),
             counted = static_cast<double>(test::counted_peak(
                 setup, context, std::max<std::int64_t>(largest - 1, 0), largest + 1));
  fmt::print(
      "memory {:.2f} MB, estimate {:.2f} MB ({:.2f} times): {}, {} of plans, {} for a pass\n",
      1e-6 * counted, 1e-6 * estimate, estimate / counted, bytes.text(), format_bytes(bytes.plans),
      format_bytes(bytes.pass));
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: step_counts EXPERIMENT [KEY=VALUE ...]\n");
    return 2;
  }
  try {
    tpudist::ConfigDocument document =
        tpudist::ConfigDocument::load(argv[1], std::vector<std::string>(argv + 2, argv + argc));
    const tpudist::Experiment experiment = tpudist::read_experiment(document);
    tpudist::print_counts(experiment);
  } catch (const tpudist::Error& error) {
    fmt::print(stderr, "step_counts: {}\n", error.what());
    return error.exit_code();
  }
}
