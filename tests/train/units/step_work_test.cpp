#include "train/units/step_work.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "core/error.hpp"
#include "core/prefetcher.hpp"
#include "dist/collectives/communicator.hpp"
#include "tests/train/tiny_data.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

// The units of an experiment's steps, planned by so many threads.
struct StepCase {
  StepCase(std::vector<std::string> overrides, int threads)
      : experiment(tiny_experiment(std::move(overrides))),
        pool(threads),
        setup(experiment, experiment.data.training(), pool, -1, 1, *world),
        builder(setup.steps_of(0)) {}

  const Experiment experiment;
  const std::unique_ptr<Communicator> world = make_self_communicator();
  ThreadPool pool;
  const TrainingSetup setup;
  const StepBuilder builder;
};

void expect_equal(const StepWork& a, const StepWork& b) {
  ASSERT_EQ(a.passes.size(), b.passes.size());
  for (std::size_t i = 0; i < a.passes.size(); ++i) {
    const UnitPass &x = a.passes[i], &y = b.passes[i];
    EXPECT_EQ(x.unit, y.unit);
    EXPECT_EQ(x.first_member, y.first_member);
    EXPECT_EQ(x.members, y.members);
    EXPECT_EQ(x.data->slates.front().configs, y.data->slates.front().configs);
    EXPECT_EQ(x.data->input.states, y.data->input.states);
    EXPECT_EQ(x.data->input.plan->node, y.data->input.plan->node);
    EXPECT_EQ(x.data->input.plan->readout.cells.forward.source,
              y.data->input.plan->readout.cells.forward.source);
  }
}

TEST(StepWork, DoesNotDependOnTheNumberOfThreads) {
  for (const char* order : {"batch.order=shared", "batch.order=per_member"}) {
    const std::vector<std::string> overrides{order, "batch.slates=7", "batch.configs=4"};
    const StepCase one(overrides, 1), four(overrides, 4);
    for (std::int64_t step = 0; step < 3; ++step)
      expect_equal(one.builder.build(step), four.builder.build(step));
  }
}

TEST(StepWork, BuildsEachUnitOnceForAllMembersThatSeeItsRows) {
  for (const int threads : {1, 4}) {
    const StepCase shared({"batch.order=shared", "batch.slates=7", "batch.configs=4",
                           "ensemble.folds=none", "batch.member_chunk=1"},
                          threads);
    const auto members = static_cast<std::size_t>(shared.experiment.ensemble.members);
    std::atomic<int> built{0};
    const StepWork work =
        shared.builder.build(0, std::vector<bool>(members, true), [&] { ++built; });
    EXPECT_EQ(built, work.batch.units());
    EXPECT_EQ(work.passes.size(), members * static_cast<std::size_t>(work.batch.units()));
    EXPECT_GT(work.plan_seconds, 0);
  }
}

// As from a data set that can no longer be read, in any thread.
TEST(StepWork, AnErrorReachesWhoTakesTheStep) {
  const StepCase four({"batch.slates=7", "batch.configs=4"}, 4);
  const std::vector<bool> training(four.experiment.ensemble.members, true);
  Prefetcher<StepWork> steps(0, 3, 2, [&](std::int64_t step) {
    return four.builder.build(step, training, [&] {
      if (step == 1) throw DataError("unit of step 1");
    });
  });
  EXPECT_EQ(steps.next().batch.step, 0);
  EXPECT_THROW(steps.next(), DataError);
  EXPECT_EQ(steps.next().batch.step, 2);
}

}  // namespace
}  // namespace tpudist::test
