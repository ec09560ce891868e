#include "train/loop/training_step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

// What the first step of an experiment gives.
struct FirstStep {
  std::vector<std::vector<double>> gradients;  // [M][P]
  std::vector<double> loss;                    // [M]
  std::vector<std::vector<double>> targets;    // of each slate of the last pass
  int units = 0, passes = 0;
  std::size_t chunks = 0;  // of all passes together
};

// The first moment of a fresh Adam is (1 - beta1) times the gradient of its first step. `moved`:
// added to the initial parameters, [M][P]; empty: nothing.
FirstStep first_step(std::vector<std::string> overrides,
                     const std::vector<std::vector<double>>& moved = {}) {
  overrides.insert(overrides.end(), {"optimizer.clip_norm=0", "ensemble.folds=none"});
  const Experiment experiment = tiny_experiment(overrides);
  OneRank alone(2);
  const TrainingSetup setup(experiment, experiment.data.training(), alone.pool, -1, 1,
                            *alone.world);
  TrainingState state(setup);
  state.initialise(experiment, setup.network);
  std::size_t at = 0;
  for (const std::vector<double>& member : moved) {
    for (const double value : member)
      state.change_weights().flat[at++] += static_cast<float>(value);
  }
  TrainingStep step(experiment, setup.network, alone.context);
  const StepWork work = setup.steps_of(0).build(0);
  FirstStep first;
  first.loss = step.run(work, state).loss;
  first.units = work.batch.units();
  first.passes = static_cast<int>(work.passes.size());
  for (const UnitPass& pass : work.passes) first.chunks += pass.data->chunks.size();
  for (const Slate& slate : work.passes.back().data->slates) first.targets.push_back(slate.targets);
  const auto length = static_cast<std::size_t>(setup.network.parameters().length());
  const std::span<const float> moment = state.weights().optimizer.first_moment();
  for (int m = 0; m < experiment.ensemble.members; ++m) {
    std::vector<double>& gradient = first.gradients.emplace_back();
    for (const float value : moment.subspan(static_cast<std::size_t>(m) * length, length)) {
      gradient.push_back(value / (1 - experiment.optimizer.beta1));
    }
  }
  return first;
}

// The norm of the difference over the norm, of the member where it is largest.
double largest_difference(const FirstStep& a, const FirstStep& b) {
  double largest = 0;
  for (std::size_t m = 0; m < a.gradients.size(); ++m) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < a.gradients[m].size(); ++i) {
      difference += std::pow(a.gradients[m][i] - b.gradients[m][i], 2);
      size += std::pow(a.gradients[m][i], 2);
    }
    EXPECT_GT(size, 0) << m;
    largest = std::max(largest, std::sqrt(difference / size));
  }
  return largest;
}

constexpr double kRounding = 1e-5;  // float32 sums in another order

class TrainingStepWith : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainingStepWith, MergedSlatesHaveTheGradientOfSlatesApart) {
  const auto with = [](const char* unit) {
    return first_step({"batch.slates=12", unit, GetParam()});
  };
  const FirstStep apart = with("batch.unit=slates"), merged = with("batch.unit=graph");
  EXPECT_EQ(apart.units, 12);
  EXPECT_LT(merged.units, 12);
  EXPECT_LT(largest_difference(apart, merged), kRounding);
  for (std::size_t m = 0; m < apart.loss.size(); ++m) {
    EXPECT_NEAR(merged.loss[m] / apart.loss[m], 1, kRounding);
  }
}

TEST_P(TrainingStepWith, ChunksOfASlateHaveTheGradientOfTheWhole) {
  const FirstStep whole = first_step({"batch.configs=8", GetParam()});
  const FirstStep chunks = first_step({"batch.configs=8", "batch.config_chunk=3", GetParam()});
  EXPECT_EQ(whole.chunks, 0u);
  // The first configuration with 2, 2, 2 and 1 others.
  EXPECT_EQ(chunks.chunks, 4u * static_cast<unsigned>(chunks.passes));
  EXPECT_LT(largest_difference(whole, chunks), kRounding);
  for (std::size_t m = 0; m < whole.loss.size(); ++m) {
    EXPECT_NEAR(chunks.loss[m] / whole.loss[m], 1, kRounding);
  }
}

// The comparison above notices a slate that is left out.
TEST_P(TrainingStepWith, OtherSlatesHaveAnotherGradient) {
  const FirstStep two = first_step({"batch.slates=2", GetParam()});
  const FirstStep three = first_step({"batch.slates=3", GetParam()});
  EXPECT_GT(largest_difference(three, two), 1e-2);
}

// With a margin that no difference of scores comes near, the loss counts pairs.
TEST_P(TrainingStepWith, TheBatchHingeComparesAllSlates) {
  const auto loss_with = [](const std::string& loss) {
    return first_step({"batch.unit_slates=3", "loss={" + loss + "}", GetParam()});
  };
  const auto pairs_of = [](const std::vector<std::vector<double>>& slates, bool relative) {
    std::vector<double> all;
    for (const std::vector<double>& slate : slates)
      for (const double target : slate)
        all.push_back(relative ? target / std::ranges::min(slate) : target);
    double pairs = 0;
    for (const double a : all)
      for (const double b : all) pairs += a > b;
    return pairs / static_cast<double>(all.size() * all.size());
  };
  const FirstStep raw = loss_with("batch_hinge: {margin: 1e6}"),
                  relative = loss_with("batch_hinge: {margin: 1e6, relative: true}"),
                  both = loss_with("batch_hinge: {margin: 1e6, weight: 0.5}, mse: {unit: seconds}");
  ASSERT_EQ(raw.units, 1);
  ASSERT_EQ(raw.targets.size(), 3u);
  const double pairs = pairs_of(raw.targets, false), of_relative = pairs_of(raw.targets, true);
  EXPECT_LT(of_relative, pairs) << "the fastest of each slate are equal";
  for (std::size_t m = 0; m < raw.loss.size(); ++m) {
    EXPECT_NEAR(raw.loss[m] / (1e6 * pairs), 1, kRounding);
    EXPECT_NEAR(relative.loss[m] / (1e6 * of_relative), 1, kRounding);
    EXPECT_NEAR(both.loss[m] / (0.5e6 * pairs), 1, kRounding);
  }
}

// Along the gradient itself the loss changes by its norm. The margin keeps the hinge away from its
// kinks.
TEST_P(TrainingStepWith, TheGradientOfTheBatchHingeIsThatOfDifferences) {
  const std::vector<std::string> overrides = {"batch.unit_slates=3", "model.readout.scale=1",
                                              GetParam(),
                                              "loss={batch_hinge: {margin: 100, relative: true, "
                                              "weight: 2}, pairwise_hinge: {margin: 100}}"};
  const FirstStep here = first_step(overrides);
  std::vector<double> norms;
  for (const auto& gradient : here.gradients) {
    double squares = 0;
    for (const double value : gradient) squares += value * value;
    norms.push_back(std::sqrt(squares));
  }
  constexpr double kStep = 2e-3;
  const auto loss_at = [&](double step) {
    std::vector<std::vector<double>> moved = here.gradients;
    for (std::size_t m = 0; m < moved.size(); ++m) {
      for (double& value : moved[m]) value *= step / norms[m];
    }
    return first_step(overrides, moved).loss;
  };
  const std::vector<double> above = loss_at(kStep), below = loss_at(-kStep);
  for (std::size_t m = 0; m < norms.size(); ++m) {
    EXPECT_GT(norms[m], 0);
    EXPECT_NEAR((above[m] - below[m]) / (2 * kStep) / norms[m], 1, 5e-3);
  }
}

TEST(BatchHinge, NeedsAUnitThatHoldsTheBatch) {
  const std::string loss = "loss={batch_hinge: {}}";
  for (const char* unit : {"batch.unit_slates=2", "batch.unit=graph", "batch.unit_slates=1"}) {
    try {
      tiny_experiment({loss, unit});
      ADD_FAILURE() << unit;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("give batch.unit: slates, batch.unit_slates: 3"),
                std::string::npos);
    }
  }
  EXPECT_NO_THROW(tiny_experiment({loss, "batch.unit_slates=3"}));
}

INSTANTIATE_TEST_SUITE_P(Plans, TrainingStepWith, ::testing::Values("plan=dense", "plan=refined"),
                         [](const auto& plan) {
                           return std::string(plan.param).substr(std::string("plan=").size());
                         });

}  // namespace
}  // namespace tpudist::test
