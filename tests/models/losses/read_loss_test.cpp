#include "models/losses/losses.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "tests/models/losses/read_any_loss.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using Doubles = std::vector<double>;
// The name of a slate, the document, the loss and its gradient.
using GoldenLoss = std::tuple<std::string, std::string, double, Doubles>;

std::string mistake(const char* yaml, TargetKind targets = TargetKind::nanoseconds) {
  return test::message_of<ConfigError>([&] { read_any_loss(yaml, targets); });
}

// Relative to the value, and to the largest part of the gradient.
constexpr double kRounding = 1e-12;

void expect_near(const std::vector<double>& gradient, const std::vector<double>& expected) {
  ASSERT_EQ(gradient.size(), expected.size());
  double largest = 0;
  for (const double g : expected) largest = std::max(largest, std::abs(g));
  for (std::size_t k = 0; k < gradient.size(); ++k)
    EXPECT_NEAR(gradient[k], expected[k], kRounding * largest) << k;
}

// By PyTorch's autograd in double (tests/golden/losses.py).
const nlohmann::json& golden() {
  static const nlohmann::json all = nlohmann::json::parse(
      read_text_file(test::source_folder() / "tests/models/losses/golden.json"));
  return all;
}

// Every loss and sums of them, with ties, equal targets, large scores and run times in seconds. The
// reference draws the permutations of `permutations` itself, from the tie key 1.
TEST(ReadLoss, GivesTheLossesAndGradientsOfPyTorch) {
  ASSERT_EQ(golden().at("losses").size(), 100u);
  for (const auto& [slate, yaml, value, expected] :
       golden().at("losses").get<std::vector<GoldenLoss>>()) {
    SCOPED_TRACE(slate + " " + yaml);
    const Doubles scores = golden().at("slates").at(slate).at(0),
                  targets = golden().at("slates").at(slate).at(1);
    Doubles gradient(scores.size());
    const double loss = read_any_loss(yaml.c_str())->evaluate(scores, targets, 1, gradient).loss;
    EXPECT_NEAR(loss, value, kRounding * std::abs(value));
    expect_near(gradient, expected);
  }
}

// The slates are joined here, as TrainingStep joins those of a batch.
TEST(ReadLoss, GivesTheLossOfABatchOfPyTorch) {
  ASSERT_EQ(golden().at("batch_losses").size(), 5u);
  for (const auto& [yaml, expected, expected_gradient] :
       golden().at("batch_losses").get<std::vector<std::tuple<std::string, double, Doubles>>>()) {
    SCOPED_TRACE(yaml);
    const auto loss = read_any_loss(yaml.c_str());
    const BatchLoss* const batch = loss->batch.get();
    ASSERT_NE(batch, nullptr);
    Doubles scores, targets;
    for (const auto& [of_slate, run_times] :
         golden().at("batch").get<std::vector<std::pair<Doubles, Doubles>>>()) {
      const double unit = batch->relative ? std::ranges::min(run_times) : 1;
      scores.insert(scores.end(), of_slate.begin(), of_slate.end());
      for (const double target : run_times) targets.push_back(target / unit);
    }
    Doubles gradient(scores.size());
    const double value = batch->loss.evaluate(scores, targets, 1, gradient).loss;
    EXPECT_NEAR(batch->weight * value, expected, kRounding * expected);
    for (double& g : gradient) g *= batch->weight;
    expect_near(gradient, expected_gradient);
  }
}

TEST(ReadLoss, WeighsTheTerm) {
  const std::vector<double> scores = {1, 5}, targets = {2, 1};
  std::vector<double> gradient(2), plain(2);
  const double loss = read_any_loss("loss: {list_mle: {weight: 2.5, clip_norm: 3}}")
                          ->evaluate(scores, targets, 0, gradient)
                          .loss;
  EXPECT_DOUBLE_EQ(loss, 2.5 * list_mle(3).evaluate(scores, targets, 0, plain).loss);
  EXPECT_DOUBLE_EQ(gradient[0], 2.5 * plain[0]);
}

// A sum ignores a shift of the scores only where all of its terms do.
TEST(ReadLoss, KnowsWhetherASumIgnoresShifts) {
  const std::vector<double> scores = {1, 5}, targets = {2, 1};
  std::vector<double> gradient(2);
  const struct {
    const char* yaml;
    bool ignores;
  } cases[] = {
      {"loss: {list_mle: {}}", true},
      {"loss: {list_mle: {clip_norm: 500}}", false},
      {"loss: {diff_mat: {}}", true},
      {"loss: {pairwise_hinge: {}}", true},
      {"loss: {pairwise_logistic: {}}", true},
      {"loss: {mape: {}}", false},
      {"loss: {mse: {}}", false},
      {"loss: {pairwise_hinge: {}, diff_mat: {}}", true},
      {"loss: {pairwise_hinge: {}, mse: {}}", false},
  };
  EXPECT_FALSE(read_any_loss("loss: {batch_hinge: {}}")->is_translation_invariant);
  for (const auto& expected : cases) {
    const auto loss = read_any_loss(expected.yaml);
    EXPECT_EQ(loss->is_translation_invariant, expected.ignores) << expected.yaml;
    const bool clipped = std::string(expected.yaml).find("clip") != std::string::npos;
    EXPECT_EQ(loss->evaluate(scores, targets, 0, gradient).translation_invariant,
              expected.ignores || clipped)  // at these scores nothing is clipped
        << expected.yaml;
  }
}

TEST(ReadLoss, TakesTargetsOfTilesAsTheyAre) {
  const std::vector<double> scores = {1, 5}, targets = {2, 1};
  std::vector<double> gradient(2);
  EXPECT_DOUBLE_EQ(read_any_loss("loss: {mape: {}}", TargetKind::normalised)
                       ->evaluate(scores, targets, 0, gradient)
                       .loss,
                   (0.5 + 4) / 2);
  EXPECT_THAT(mistake("loss: {mape: {unit: seconds}}", TargetKind::normalised),
              HasSubstr("have no unit"));
  EXPECT_EQ(mistake("loss: {mse: {unit: normalised}}", TargetKind::normalised), "");
}

TEST(ReadLoss, ReadsALossOfTheBatchBesideThoseOfSlates) {
  EXPECT_EQ(read_any_loss("loss: {mse: {}}")->batch, nullptr);
  const auto loss = read_any_loss("loss: {batch_hinge: {weight: 2, margin: 3, relative: true}}");
  ASSERT_NE(loss->batch, nullptr);
  EXPECT_EQ(loss->batch->weight, 2);
  EXPECT_TRUE(loss->batch->relative);
  const std::vector<double> scores = {1, 5}, targets = {2, 1};
  std::vector<double> gradient(2);
  EXPECT_EQ(loss->batch->loss.evaluate(scores, targets, 0, gradient).loss, (3 + 4) / 4.0);
  EXPECT_EQ(loss->evaluate(scores, targets, 0, gradient).loss, 0) << "of a slate alone";
  EXPECT_EQ(gradient, std::vector<double>(2));
}

TEST(ReadLoss, NamesMistakes) {
  EXPECT_THAT(mistake("loss: {}"), HasSubstr("pairwise_hinge"));
  EXPECT_THAT(mistake("loss: {list_mel: {weight: 1}}"), HasSubstr("list_mle"));
  EXPECT_THAT(mistake("loss: {list_mle: {weight: -1}}"), HasSubstr("weight"));
  EXPECT_THAT(mistake("loss: {list_mle: {clip_norm: 0}}"), HasSubstr("clip_norm"));
  EXPECT_THAT(mistake("loss: {list_mle: {temperature: 0}}"), HasSubstr("temperature"));
  EXPECT_THAT(mistake("loss: {list_mle: {temperature: .inf}}"), HasSubstr("temperature"));
  EXPECT_THAT(mistake("loss: {diff_mat: {margin: -1}}"), HasSubstr("margin"));
  EXPECT_THAT(mistake("loss: {diff_mat: {margin: 0, scale: inverse_margin}}"),
              HasSubstr("divides by the margin"));
  EXPECT_THAT(mistake("loss: {diff_mat: {scale: 100}}"), HasSubstr("inverse_margin"));
  EXPECT_THAT(mistake("loss: {pairwise_hinge: {reduction: max}}"), HasSubstr("sum"));
  EXPECT_THAT(mistake("loss: {pairwise_hinge: {margn: 1}}"), HasSubstr("margin"));
  EXPECT_THAT(mistake("loss: {pairwise_logistic: {sigma: 0}}"), HasSubstr("sigma"));
  EXPECT_THAT(mistake("loss: {pairwise_logistic: {hardest: 0}}"), HasSubstr("hardest"));
  EXPECT_THAT(mistake("loss: {pairwise_hinge: {top_weight: 10}}"), HasSubstr("give their number"));
  EXPECT_THAT(mistake("loss: {pairwise_hinge: {permutations: 0.5}}"), HasSubstr("permutations"));
  EXPECT_THAT(mistake("loss: {pairwise_hinge: {permutations: -1}}"), HasSubstr("permutations"));
  EXPECT_THAT(mistake("loss: {pairwise_hinge: {margin: .inf}}"), HasSubstr("margin"));
  EXPECT_THAT(mistake("loss: {pairwise_logistic: {top: 1, top_weight: .inf}}"),
              HasSubstr("top_weight"));
  EXPECT_THAT(mistake("loss: {mape: {unit: minutes}}"), HasSubstr("milliseconds"));
}

}  // namespace
}  // namespace tpudist
