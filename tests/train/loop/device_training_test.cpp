// Training on the emulated device: LibTorch's tensors on the CPU in a device's place, with the
// project's kernels compiled as C++.

#include <gtest/gtest.h>

#include "dist/collectives/mpi_session.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "models/network/composed_executor.hpp"
#include "models/operators/device_backend.hpp"
#include "tests/models/launch_counter.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/loop/training_step.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// Stands in for the one of models/network: objects come before libraries when a program is linked.
DeviceContext place_on(int device_index, Precision) {
  if (device_index < 0) return {};
  return {at::kCPU, make_device_backend};
}
// Likewise: ranks add their gradients in the host's tree over MPI.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, int, const NcclOptions&) {
  return nullptr;
}

namespace test {
namespace {

NodeTopology on_device() {
  NodeTopology place;
  place.device = 0;
  return place;
}

// Four steps of a small stack of SAGE layers, that of the second place but for its widths.
Experiment small_experiment(std::vector<std::string> overrides) {
  overrides.insert(
      overrides.begin(),
      {"model={encoder: {opcode_width: 4, node_width: 6, width: 8}, blocks: "
       "[{layer: sage, width: 8}, {layer: sage, width: 12}, {layer: sage, width: 16}], "
       "readout: {pool: sum, scale: 0.1}}",
       "train={steps: 4, evaluate_every: 2, evaluate_rows: 6, last_evaluation: sampled}"});
  return tiny_experiment(overrides);
}

Experiment five_members(const std::string& member_chunk = "") {
  return small_experiment({"ensemble={members: 5, vary: [init, fold], folds: 5}",
                           "batch={slates: 3, configs: 4" + member_chunk + "}"});
}

// Steps of a training on the emulated device, and what they took.
struct CountedSteps {
  explicit CountedSteps(const Experiment& experiment)
      : experiment(experiment), setup(experiment, experiment.training_data(), pool, 0, 1, *world) {
    TrainingState state(experiment, setup.network);
    state.initialise(experiment, setup.network);
    TrainingStep step(experiment, setup.network, context);
    const StepBuilder builder = setup.steps_of(0);
    for (int i = 0; i < 4; ++i) {
      before = setup.network.copies();
      const StepWork work = builder.build(i);
      passes = static_cast<std::int64_t>(work.passes.size());
      units = work.batch.units();
      const LaunchCounter counter;
      step.run(work, state);
      launches = counter.launches();
      after = setup.network.copies();
      if (i == 1) page_locked_after_two = after.page_locked;
    }
  }
  const Experiment& experiment;
  const std::unique_ptr<Communicator> world = make_self_communicator();
  ThreadPool pool{1, use_one_thread_per_worker};
  NoProgress progress;
  JobContext context{*world, pool, on_device(), progress};
  TrainingSetup setup;
  // Of the last step.
  CopyCounts before, after;
  std::int64_t passes = 0, units = 0, launches = 0;
  std::int64_t page_locked_after_two = 0;
};

// What a step may ask of a device, where each slate trains four of five members. The parameters go
// up in one copy, and so does all that a unit needs. For each unit its scores come down and their
// gradients go up. The gradients of the parameters come down together.
TEST(DeviceTraining, AStepStaysWithinItsBudget) {
  const Experiment experiment = five_members();
  const CountedSteps step(experiment);
  EXPECT_GT(step.passes, step.units);  // members of a call are no neighbours
  EXPECT_EQ(step.after.uploads - step.before.uploads, 1 + 2 * step.units);
  EXPECT_EQ(step.after.downloads - step.before.downloads, step.units + 1);
  EXPECT_EQ(step.after.waits - step.before.waits, step.units + 1);
  EXPECT_EQ(step.after.page_locked, step.page_locked_after_two);
  EXPECT_LE(step.launches, 250 * step.units);
}

TrainOutcome run_on_device(const Experiment& experiment, const std::filesystem::path& folder,
                           Communicator& world, int threads) {
  ThreadPool pool(threads, use_one_thread_per_worker);
  NoProgress progress;
  JobContext context{world, pool, on_device(), progress};
  return train(experiment, folder, false, context, [] { return false; });
}

// Scores of evaluations too, by which checkpoints are chosen and members stop.
TEST(DeviceTraining, GivesOneHashForAnyNumberOfRanksAndMembersOfACall) {
  int argc = 0;
  char** argv = nullptr;
  const MpiSession session(&argc, &argv);
  const auto world = session.world();
  const TempDir own;
  const std::filesystem::path shared = path_of_first(*world, own.path());
  const TrainOutcome together = run_on_device(five_members(), shared / "together", *world, 2);
  EXPECT_EQ(together.steps, 4);
  EXPECT_TRUE(together.failed.empty());
  ASSERT_TRUE(together.evaluation.has_value());
  // Every rank by itself, each member in a call of its own.
  const auto self = make_self_communicator();
  const TrainOutcome alone =
      run_on_device(five_members(", member_chunk: 1"), own / "alone", *self, 1);
  EXPECT_EQ(alone.parameter_hash, together.parameter_hash);
  EXPECT_EQ(alone.evaluation->member_means(), together.evaluation->member_means());
  // Near the CPU's numbers; additions have another order.
  const TrainOutcome cpu = run(five_members(), own / "cpu");
  const std::vector<double> expected = cpu.evaluation->member_means(),
                            actual = together.evaluation->member_means();
  for (std::size_t m = 0; m < expected.size(); ++m) EXPECT_NEAR(actual[m], expected[m], 0.05);
  world->barrier();  // the folder of rank 0 stays until all are done
}

}  // namespace
}  // namespace test
}  // namespace tpudist
