#include "train/loop/member_stops.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/file_system.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::IsEmpty;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(BadLoss, LeavesAMemberOutAtOnce) {
  BadLoss bad({BadLossConfig::Policy::stop, 10}, 1);
  EXPECT_EQ(bad.judge(0, 10, 1), StepVerdict::take);
  EXPECT_EQ(bad.judge(0, 10.1, 1), StepVerdict::leave);
  EXPECT_EQ(bad.judge(0, kNaN, 1), StepVerdict::leave);
  EXPECT_EQ(bad.judge(0, 1, kInfinity), StepVerdict::leave);
}

TEST(BadLoss, SkipsUntilTooManyInARowWereBad) {
  BadLoss bad({BadLossConfig::Policy::skip, kInfinity}, 2);
  for (int i = 0; i < BadLoss::kMostSkipped; ++i)
    EXPECT_EQ(bad.judge(1, kNaN, 1), StepVerdict::skip) << i;
  BadLoss saved({BadLossConfig::Policy::skip, kInfinity}, 2);
  std::map<std::string, double> numbers;
  bad.save(numbers);
  saved.restore(numbers);
  EXPECT_EQ(saved.judge(1, kNaN, 1), StepVerdict::leave);
  EXPECT_EQ(bad.judge(1, 1, 1), StepVerdict::take);  // and from the start again
  EXPECT_EQ(bad.judge(1, kNaN, 1), StepVerdict::skip);
  EXPECT_EQ(bad.judge(0, kNaN, 1), StepVerdict::skip);  // each member by itself
}

// Losses of the logged steps, a list of members each.
std::vector<std::vector<double>> losses_of(const std::filesystem::path& folder) {
  std::vector<std::vector<double>> losses;
  std::istringstream lines(read_text_file(folder / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record["kind"] != "step") continue;
    losses.emplace_back();
    for (const auto& loss : record["loss"])
      losses.back().push_back(loss.is_null() ? kNaN : loss.get<double>());
  }
  return losses;
}

// An experiment in which the worst loss of all members and steps is bad.
Experiment with_a_bad_loss(const TempDir& folder, const std::string& policy) {
  const std::vector<std::string> common{"train.steps=8", "train.log_every=1",
                                        "train.checkpoint_every=2",
                                        "train.average={kind: ema, decay: 0.5}"};
  run(tiny_experiment(common), folder / ("plain-" + policy));
  double worst = 0, next = 0;
  const auto losses = losses_of(folder / ("plain-" + policy));
  EXPECT_EQ(losses.size(), 8u);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    for (const double loss : losses[step]) {
      if (loss > worst)
        next = std::exchange(worst, loss);
      else
        next = std::max(next, loss);
    }
  }
  std::vector<std::string> keys = common;
  keys.push_back("train.on_bad_loss=" + policy);
  keys.push_back("train.bad_loss_above=" + std::to_string((worst + next) / 2));
  return tiny_experiment(keys);
}

// Whatever is done about it, a run that was stopped at each step goes on with the same bits.
void expect_same_bits_when_stopped(const Experiment& experiment, const TempDir& folder) {
  const TrainOutcome whole = run(experiment, folder / "whole");
  TrainOutcome outcome;
  for (int step = 0; step < 8; ++step) {
    outcome = run(experiment, folder / "stopped", 1, step > 0, stop_after(1));
  }
  EXPECT_EQ(outcome.steps, 8);
  EXPECT_EQ(outcome.parameter_hash, whole.parameter_hash);
  EXPECT_EQ(outcome.average_hash, whole.average_hash);
  EXPECT_EQ(outcome.failed, whole.failed);
}

TEST(BadLoss, OfARunLeavesTheMemberOut) {
  const TempDir folder;
  const Experiment experiment = with_a_bad_loss(folder, "stop");
  EXPECT_EQ(run(experiment, folder / "run").failed.size(), 1u);
  expect_same_bits_when_stopped(experiment, folder);
}

TEST(BadLoss, OfARunSkipsTheStep) {
  const TempDir folder;
  const Experiment experiment = with_a_bad_loss(folder, "skip");
  const TrainOutcome outcome = run(experiment, folder / "run");
  EXPECT_THAT(outcome.failed, IsEmpty());
  int skipped = 0;
  for (const auto& losses : losses_of(folder / "run")) {
    for (const double loss : losses) skipped += std::isnan(loss) ? 1 : 0;
  }
  EXPECT_GE(skipped, 1);
  expect_same_bits_when_stopped(experiment, folder);
}

}  // namespace
}  // namespace tpudist::test
