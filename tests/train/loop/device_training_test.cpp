// Training on the emulated device: LibTorch's tensors on the CPU in a device's place, with the
// project's kernels compiled as C++.

#include <gmock/gmock.h>

#include "core/process.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "models/device/device_backend.hpp"
#include "models/network/executor.hpp"
#include "tests/dist/faulty_communicator.hpp"
#include "tests/models/launch_counter.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/loop/forecast.hpp"
#include "train/loop/training_step.hpp"
#include "train/scoring/scoring_session.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// Stands in for the one of models/network: objects come before libraries when a program is linked.
DeviceContext make_device_context(int device_index, Precision) {
  if (device_index < 0) return {};
  return {at::kCPU, make_device_backend};
}
// Likewise: the memory of this device is the host's, so MPI takes it.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int, RankActivity*,
                                                     double) {
  return world.split(0);
}

namespace test {
namespace {

NodeTopology on_device() {
  NodeTopology topology;
  topology.device = 0;
  return topology;
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
                           "batch={slates: 3, configs: 4" + member_chunk + "}",
                           "optimizer.clip_norm=0.1",
                           "train.average={kind: ema, decay: 0.5, from: 0.25}"});
}

// Steps of a training on the emulated device, and what they took.
struct CountedSteps {
  explicit CountedSteps(const Experiment& experiment,
                        const std::function<void(TrainingState&)>& between = {})
      : experiment(experiment),
        setup(experiment, experiment.training_data(), pool, 0, 1, *world),
        state(setup) {
    state.initialise(experiment, setup.network);
    TrainingStep step(experiment, setup.network, context);
    const StepBuilder builder = setup.steps_of(0);
    for (int i = 0; i < 4; ++i) {
      before = setup.network.copies();
      const StepWork work = builder.build(i);
      passes = std::ssize(work.joined);
      units = work.batch.units();
      const LaunchCounter counter;
      step.run(work, state);
      launches = counter.launches();
      after = setup.network.copies();
      if (i == 1) page_locked_after_two = after.page_locked;
      if (between) between(state);
    }
  }
  const Experiment& experiment;
  const std::unique_ptr<Communicator> world = make_self_communicator();
  ThreadPool pool{1, use_one_thread_per_worker};
  NoProgress progress;
  JobContext context{*world, pool, on_device(), progress};
  TrainingSetup setup;
  TrainingState state;
  // Of the last step.
  CopyCounts before, after;
  std::int64_t passes = 0, units = 0, launches = 0;
  std::int64_t page_locked_after_two = 0;
};

// What a step may ask of a device, where each slate trains four of five members. All units are one
// pass: what it needs goes up in one copy, its scores come down, their gradients and the list of
// leaves go up. At the end losses and the plan of additions go up, losses and norms come down, and coefficients and the
// shares of the average go up.
TEST(DeviceTraining, AStepStaysWithinItsBudget) {
  const Experiment experiment = five_members();
  const CountedSteps step(experiment);
  EXPECT_GT(step.units, 1);
  EXPECT_EQ(step.passes, 1);
  EXPECT_EQ(step.after.uploads - step.before.uploads, 3 + 3);
  EXPECT_EQ(step.after.downloads - step.before.downloads, 2);
  // Neither parameters nor gradients are among them: 64 columns of scores, a loss, a norm and a
  // hash for each member.
  EXPECT_EQ(step.after.downloaded_bytes - step.before.downloaded_bytes, 5 * (64 * 8 + 24));
  EXPECT_EQ(step.after.waits - step.before.waits, 2);
  EXPECT_EQ(step.after.page_locked, step.page_locked_after_two);
  EXPECT_LE(step.launches, 250);
}

// Members also compute the slates that they hold out: of three slates in five folds one member in
// five holds out each.
TEST(DeviceTraining, TheDryRunCountsWhatAJoinedPassComputes) {
  const auto world = make_self_communicator();
  ThreadPool pool(1, use_one_thread_per_worker);
  NoProgress progress;
  const auto operations = [&](const NodeTopology& topology) {
    JobContext context{*world, pool, topology, progress};
    const std::string text = plan_work(five_members(), {1}, context).text;
    const std::string before = "training     4 steps of ";
    return std::stod(text.substr(text.find(before) + before.size()));
  };
  EXPECT_NEAR(operations(on_device()) / operations(NodeTopology()), 1.25, 0.02);
}

// The clip of each tensor by itself needs no more copies than that of all.
TEST(DeviceTraining, AClipOfEachTensorIsTakenOnTheDevice) {
  const Experiment experiment =
      small_experiment({"ensemble={members: 2, vary: [init]}", "batch={slates: 3, configs: 4}",
                        "optimizer={name: adam, clip_norm: 0, clip_tensor_norm: 0.01, decay: {all: "
                        "0.1, clipped: true}}"});
  const CountedSteps step(experiment);
  EXPECT_EQ(step.after.uploads - step.before.uploads, 2 + 2);
  EXPECT_EQ(step.after.downloads - step.before.downloads, 2);
  EXPECT_EQ(step.after.waits - step.before.waits, 2);
}

TrainOutcome run_on_device(
    const Experiment& experiment, const std::filesystem::path& folder, Communicator& world,
    int threads, bool resume = false, const std::function<bool()>& stop = [] { return false; }) {
  ThreadPool pool(threads, use_one_thread_per_worker);
  NoProgress progress;
  JobContext context{world, pool, on_device(), progress};
  return train(experiment, folder, resume, context, stop);
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
  EXPECT_EQ(alone.average_hash, together.average_hash);
  EXPECT_EQ(alone.evaluation->member_means(), together.evaluation->member_means());
  // Near the CPU's numbers; additions have another order.
  const TrainOutcome cpu = run(five_members(), own / "cpu");
  const std::vector<double> expected = cpu.evaluation->member_means(),
                            actual = together.evaluation->member_means();
  for (std::size_t m = 0; m < expected.size(); ++m) EXPECT_NEAR(actual[m], expected[m], 0.05);
  world->barrier();  // the folder of rank 0 stays until all are done
}

// Every leaf of a rank in one pass, or each in a pass of its own: the same bits. The members learn
// from nearly the same slates, or each from its own.
TEST(DeviceTraining, JoinsUnitsWithoutChangingABit) {
  const TempDir own;
  const auto self = make_self_communicator();
  const std::string encoder = "encoder: {opcode_width: 4, node_width: 6, width: 8}",
                    sum = "readout: {pool: sum, scale: 0.1}",
                    three = "batch={slates: 3, configs: 4",
                    folds = "ensemble={members: 5, vary: [init, fold], folds: 5}",
                    order = "ensemble={members: 3, vary: [init, order]}";
  const std::vector<std::vector<std::string>> cases{
      {three, folds,
       "model={" + encoder +
           ", blocks: [{layer: sage, width: 8}, {layer: sage, "
           "width: 12, aggregation: max}], " +
           sum + "}"},
      {three, order,
       "model={" + encoder +
           ", blocks: [{layer: sage, width: 8}, {layer: sage, "
           "width: 12, aggregation: max}], " +
           sum + "}"},
      {three, order, "plan=dense",
       "model={" + encoder +
           ", blocks: [{layer: sage, width: 8}, "
           "{layer: layer_norm}, {layer: dropout, rate: 0.2}, {layer: sage, width: 12}], "
           "readout: {pool: mean+max, widths: [6]}}"},
      {three, folds, "evaluate.slate={configs: 6}",
       "model={encoder: {node_transform: standardised, width: 8}, blocks: [{layer: "
       "sage, width: 8}, {layer: config_attention}], readout: {pool: mean+max}}"},
      {three, order, "evaluate.slate={configs: 6}",
       "model={encoder: {node_transform: standardised, width: 8}, blocks: [{layer: "
       "sage, width: 8}, {layer: config_attention}], readout: {pool: mean+max}}"},
      {three, order,
       "model={" + encoder +
           ", blocks: [{layer: gcn, width: 8}, {layer: graph_norm}, "
           "{layer: gin, width: 8}], " +
           sum + "}"},
      {three, order,
       "model={encoder: {code_width: 3, node_width: 6, width: 8}, blocks: [{layer: sage, width: "
       "8}, "
       "{layer: prelu}, {layer: l2_norm}], " +
           sum + "}"},
      {three, folds,
       "model={encoder: {opcode_width: 4, join: late}, blocks: [{layer: sage, width: 8}, "
       "{layer: instance_norm}, {layer: join_config, width: 8}, {layer: virtual_node}, "
       "{layer: pna, width: 8}], readout: {pool: l2_sum}}"},
      {three, order,
       "model={" + encoder +
           ", blocks: [{layer: gat, width: 4, heads: 2}, {layer: gatv2, width: 6, heads: 2, join: "
           "mean}, {layer: linear_attention, width: 5, heads: 2}], " +
           sum + "}"},
      {three, folds, "plan=dense",
       "model={" + encoder +
           ", blocks: [{layer: gatv2, width: 4, heads: 3}, {layer: edge_mlp, width: 3, "
           "config_width: 4}], readout: {pool: max}}"},
      {three, order,
       "model={" + encoder +
           ", blocks: [{layer: self_attention, width: 4, heads: 2, directions: "
           "[consumer_to_producer]}, {layer: edge_mlp, width: 4, config_width: 3}], " +
           sum + "}"},
      {three, folds,
       "model={" + encoder +
           ", blocks: [{layer: sage, width: 8}, {layer: self_attention, width: 5}, {layer: "
           "graph_norm}, {layer: linear_attention, width: 4, heads: 2}], readout: {pool: mean+max, "
           "violation_ratio: output}}"},
      {"batch={slates: 3, configs: 8, config_chunk: 3", folds,
       "model={" + encoder + ", blocks: [{layer: gat, width: 4}], " + sum + "}"},
      {three, order, "loss={mse: {}}",
       "model={" + encoder + ", blocks: [{layer: sage, width: 8}], " + sum + "}"},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(cases[i]));
    const auto hash_of = [&](const std::string& name, const std::string& chunk) {
      std::vector<std::string> overrides = cases[i];
      overrides[0] += chunk + "}";
      const Experiment experiment = small_experiment(overrides);
      const TrainOutcome outcome =
          run_on_device(experiment, own / (name + std::to_string(i)), *self, 2);
      EXPECT_TRUE(outcome.failed.empty());
      return outcome.parameter_hash;
    };
    EXPECT_EQ(hash_of("joined", ""), hash_of("alone", ", member_chunk: 1"));
  }
}

// A host that reads the weights after each step, or takes them to change them, has the same
// numbers, and what it changes is what the next step starts from.
TEST(DeviceTraining, WeightsComeDownWhereTheyAreRead) {
  const Experiment experiment = five_members();
  const auto numbers_of = [](const TrainingState& state) {
    const auto& [flat, optimizer, average] = state.weights();
    std::vector<float> all(flat.begin(), flat.end());
    for (const auto list : {optimizer.first_moment(), optimizer.second_moment(), average.values()})
      all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  CountedSteps alone(experiment);
  const std::vector<float> expected = numbers_of(alone.state);
  const CopyCounts once = alone.setup.network.copies();
  EXPECT_EQ(once.downloads - alone.after.downloads, 4);  // the four lists
  EXPECT_EQ(numbers_of(alone.state), expected);
  EXPECT_EQ(alone.setup.network.copies().downloads, once.downloads);

  const CountedSteps read(experiment, [&](TrainingState& state) { numbers_of(state); });
  EXPECT_EQ(numbers_of(read.state), expected);
  EXPECT_EQ(read.after.uploads - read.before.uploads, 6);
  const CountedSteps taken(experiment, [](TrainingState& state) { state.change_weights(); });
  EXPECT_EQ(numbers_of(taken.state), expected);
  const CountedSteps changed(experiment,
                             [](TrainingState& state) { state.change_weights().flat[0] += 1; });
  EXPECT_NE(numbers_of(changed.state), expected);
}

// Slates of a search copy the weights to the device once; other weights are copied again.
TEST(DeviceTraining, ASearchPlacesItsWeightsOnce) {
  const Experiment experiment = small_experiment({"ensemble={members: 2, vary: [init]}"});
  const std::unique_ptr<Communicator> world = make_self_communicator();
  ThreadPool pool(1, use_one_thread_per_worker);
  NoProgress progress;
  JobContext context{*world, pool, on_device(), progress};
  const Network network = make_network(experiment, 0, pool);
  std::vector<float> flat(static_cast<std::size_t>(2 * network.parameters().length()), 0.01f),
      other(flat.size(), 0.02f);
  const Dataset data = Dataset::open(experiment.training_data(), pool);
  ScoringSession session(data, context);
  session.add(experiment, network);
  const std::vector<std::int64_t> rows{0, 1, 2};
  const Slate slate = data.slate(0, rows);
  const auto bytes_of = [&](const std::vector<float>& weights) {
    const std::int64_t before = network.copies().uploaded_bytes;
    EXPECT_EQ(session.score_slate({weights}, slate).size(), 2u);
    return network.copies().uploaded_bytes - before;
  };
  const std::int64_t first = bytes_of(flat), second = bytes_of(flat);
  EXPECT_GE(first - second, std::ssize(flat) * static_cast<std::int64_t>(sizeof(float)));
  EXPECT_GT(second, 0);
  EXPECT_EQ(bytes_of(flat), second);
  EXPECT_EQ(bytes_of(other), first);
}

// A bit of a gradient that the last rank receives in the third step, on the CPU and on the device.
// The number may be too small to change a norm.
TEST(DeviceTraining, ARankWhoseBitsPartEndsTheJobAtThatStepByName) {
  int argc = 0;
  char** argv = nullptr;
  const MpiSession session(&argc, &argv);
  const auto world = session.world();
  const int ranks = world->size();
  const TempDir own;
  const std::filesystem::path shared = path_of_first(*world, own.path());
  const Experiment experiment =
      small_experiment({"batch={slates: 3, configs: 4}", "ensemble={members: 1, vary: [init]}",
                        "train.checkpoint_every=3"});
  for (const int device : {-1, 0}) {
    int gathered = 0;
    FaultyCommunicator faulty(*world, [&](std::span<std::byte> received, std::int64_t element) {
      if (element != sizeof(float) || ++gathered != 3) return;
      if (world->rank() == ranks - 1) received[0] ^= std::byte{1};
    });
    ThreadPool pool(1, use_one_thread_per_worker);
    NoProgress progress;
    NodeTopology topology;
    topology.device = device;
    JobContext context{faulty, pool, topology, progress};
    const std::filesystem::path folder = shared / std::to_string(device);
    const std::string said = message_of<DistError>(
        [&] { train(experiment, folder, false, context, [] { return false; }); });
    if (ranks == 1) {
      EXPECT_EQ(said, "");
      continue;
    }
    EXPECT_EQ(gathered, 3);
    EXPECT_THAT(said, testing::StartsWith("losses, gradients and parameters of step 3: "));
    const std::string node = " (" + host_name() + ") ";
    EXPECT_THAT(said, testing::HasSubstr(ranks == 2 ? "rank 1" + node + "for faulty memory"
                                                    : "look at rank 2" + node + "for faulty"));
    EXPECT_FALSE(std::filesystem::exists(checkpoint_path(folder / "checkpoints", 3)));
  }
  world->barrier();  // the folder of rank 0 stays until all are done
}

// Losses and gradients are sums over all ranks: they do not tell that parameters differ.
TEST(DeviceTraining, AParameterThatDiffersShowsInTheBitsOfAStep) {
  int argc = 0;
  char** argv = nullptr;
  const MpiSession session(&argc, &argv);
  const auto world = session.world();
  const bool last = world->rank() == world->size() - 1;
  const Experiment experiment =
      small_experiment({"batch={slates: 3, configs: 4}", "ensemble={members: 1, vary: [init]}"});
  for (const int device : {-1, 0}) {
    ThreadPool pool(1, use_one_thread_per_worker);
    NoProgress progress;
    NodeTopology topology;
    topology.device = device;
    JobContext context{*world, pool, topology, progress};
    const TrainingSetup setup(experiment, experiment.training_data(), pool, device, world->size(),
                              *world);
    TrainingState state(setup);
    state.initialise(experiment, setup.network);
    if (last) state.change_weights().flat[1] *= -1;
    TrainingStep step(experiment, setup.network, context);
    const StepResult result = step.run(setup.steps_of(world->rank()).build(0), state);
    const auto losses = all_gather_variable<double>(*world, result.loss);
    const auto bits = all_gather_variable<std::uint64_t>(*world, std::span(&result.bits, 1));
    for (int rank = 0; rank < world->size(); ++rank) {
      EXPECT_EQ(losses[rank], losses[0]);
      EXPECT_EQ(bits[rank] == bits.back(), rank == world->size() - 1);
    }
  }
}

// From a checkpoint, and after a member left out a step.
TEST(DeviceTraining, GoesOnFromACheckpoint) {
  const TempDir own;
  const auto self = make_self_communicator();
  const auto train_twice = [&](const char* name, std::vector<std::string> more) {
    more.insert(more.end(), {"ensemble={members: 2, vary: [init]}", "batch={slates: 3, configs: 4}",
                             "train.average={kind: swa, from: 0.25}", "train.checkpoint_every=2"});
    const Experiment experiment = small_experiment(more);
    const TrainOutcome whole = run_on_device(experiment, own / name, *self, 1);
    const std::string part = std::string(name) + "_part";
    run_on_device(experiment, own / part, *self, 1, false, stop_after(2));
    const TrainOutcome rest = run_on_device(experiment, own / part, *self, 1, true);
    EXPECT_EQ(rest.steps, 4);
    EXPECT_EQ(rest.parameter_hash, whole.parameter_hash);
    EXPECT_EQ(rest.average_hash, whole.average_hash);
    return whole.parameter_hash;
  };
  const std::uint64_t kept = train_twice("kept", {});
  // The first loss of one member is too high.
  const std::uint64_t skipped =
      train_twice("skipped", {"optimizer.lr=1e6", "train.on_bad_loss=skip",
                              "train.bad_loss_above=3.1782", "train.log_every=1"});
  EXPECT_THAT(read_text_file(own / "skipped" / "metrics.jsonl"),
              testing::HasSubstr("\"loss\":[null,3"));
  EXPECT_NE(skipped, kept);
}

}  // namespace
}  // namespace test
}  // namespace tpudist
