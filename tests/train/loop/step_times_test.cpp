#include "train/loop/training_step.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "results/records/run_folder.hpp"
#include "results/records/tensorboard_file.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

TEST(Straggler, IsTheRankThatComputedLongest) {
  const auto [slowest, ratio] = straggler({{.compute = 1}, {.compute = 4}, {.compute = 1}});
  EXPECT_EQ(slowest, 1u);
  EXPECT_DOUBLE_EQ(ratio, 2);
}

TEST(Straggler, IsNobodyWhereNothingWasComputed) {
  const auto [slowest, ratio] = straggler({{}, {}});
  EXPECT_EQ(slowest, 0u);
  EXPECT_EQ(ratio, 1);
}

TEST(StepTimes, BecomeListsOverRanksAndScalars) {
  nlohmann::json line = times_json({{.data_wait = 1, .compute = 3}, {.compute = 5}});
  EXPECT_EQ(line["rank_seconds"]["data_wait"], nlohmann::json({1.0, 0.0}));
  EXPECT_EQ(line["slowest_rank"], 1);
  EXPECT_EQ(line["straggler_ratio"], 1.25);
  bool found = false;
  for (const Scalar& scalar : scalars_of(line)) {
    if (scalar.tag == "rank_seconds/compute/rank_1") found = scalar.value == 5;
  }
  EXPECT_TRUE(found);
}

TEST(StepTimes, OfARunAddUpToAlmostTheStep) {
  const TempDir folder;
  run(tiny_experiment({"train.log_every=1"}), folder / "run");
  std::ifstream file(RunFolder(folder / "run").metrics());
  int steps = 0;
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line["kind"] != "step") continue;
    ++steps;
    const nlohmann::json& seconds = line["rank_seconds"];
    for (const auto& [name, time] : kStepTimes) {
      ASSERT_EQ(seconds.at(name).size(), 1u) << name;
      EXPECT_GE(seconds[name][0].get<double>(), 0) << name;
    }
    EXPECT_GT(seconds["planning"][0].get<double>(), 0);
    EXPECT_GT(seconds["compute"][0].get<double>(), 0);
    const double sum = seconds["data_wait"][0].get<double>() + seconds["compute"][0].get<double>() +
                       seconds["reduction"][0].get<double>() +
                       seconds["optimizer"][0].get<double>();
    EXPECT_LE(sum, line["step_seconds"].get<double>() * (1 + 1e-9));
    EXPECT_EQ(line["straggler_ratio"], 1);
  }
  EXPECT_GT(steps, 0);
}

}  // namespace
}  // namespace tpudist::test
