#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using tpudist::testing::Outcome;
using tpudist::testing::TempDir;

class WeightsCommand : public ::testing::Test {
 protected:
  // Trained once for all tests.
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    std::ofstream(*folder_ / "tiny.yaml")
        << "name: tiny\ndata: {shards: '" << testing::tiny_shards().string() << R"(',
  collection: layout:xla:random}
batch: {slates: 2, configs: 4}
model: {preset: latenciaga_xla}
loss: {list_mle: {}}
train: {steps: 3, last_evaluation: none}
ensemble: {members: 2}
dist: {threads: 1, device: cpu}
)";
    const Outcome trained = run("train tiny.yaml --run-dir run 2>&1");
    ASSERT_EQ(trained.exit_code, 0) << trained.output;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static Outcome run(const std::string& arguments) {
    return testing::run_program(arguments, "cd " + folder_->path().string() + " && ");
  }

  // The scores of each graph and member on the validation split.
  nlohmann::json scores(const std::string& run_folder) const {
    const Outcome outcome = run("evaluate " + run_folder + " --json scores.json --quiet 2>&1");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    nlohmann::json scores = nlohmann::json::parse(read_text_file(*folder_ / "scores.json"));
    scores.erase("step");
    return scores;
  }

  static inline std::unique_ptr<TempDir> folder_;
};

TEST_F(WeightsCommand, ImportsWhatItExportedWithEqualScores) {
  const Outcome exported = run("weights export run w.safetensors 2>&1");
  ASSERT_EQ(exported.exit_code, 0) << exported.output;
  EXPECT_THAT(exported.output, HasSubstr("member 1: w-member-1.safetensors"));
  const Outcome imported =
      run("weights import tiny.yaml w-member-0.safetensors w-member-1.safetensors "
          "--run-dir imported 2>&1");
  ASSERT_EQ(imported.exit_code, 0) << imported.output;
  EXPECT_EQ(scores("imported"), scores("run"));
  EXPECT_EQ(run("predict imported --split test --csv out.csv 2>&1").exit_code, 0);
  EXPECT_EQ(run("ensemble imported --split valid 2>&1").exit_code, 0);
  // The weights that it was imported from are the same training.
  EXPECT_EQ(run("ensemble imported run --split valid 2>&1").exit_code, 2);
  const Outcome resumed = run("train tiny.yaml --run-dir imported --resume 2>&1");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("steps: 3"));
}

TEST_F(WeightsCommand, TakesOverridesBesideFiles) {
  ASSERT_EQ(run("weights export run one.safetensors --member 1 2>&1").exit_code, 0);
  const Outcome imported =
      run("weights import tiny.yaml one.safetensors ensemble.members=1 --run-dir one 2>&1");
  EXPECT_EQ(imported.exit_code, 0) << imported.output;
  EXPECT_EQ(scores("one").at("members").size(), 1u);
}

TEST_F(WeightsCommand, TellsMistakesInOneLine) {
  const auto line = [&](const std::string& arguments, int code) {
    const Outcome outcome = run(arguments + " 2>&1");
    EXPECT_EQ(outcome.exit_code, code) << arguments << ": " << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("tpudist: error: ")) << arguments;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
    return outcome.output;
  };
  line("weights export run w.safetensors --member 7", 2);
  line("weights export run missing/w.safetensors", 1);
  ASSERT_EQ(run("weights export run w.safetensors 2>&1").exit_code, 0);
  const std::string files = "w-member-0.safetensors w-member-1.safetensors";
  line("weights import tiny.yaml w-member-0.safetensors --run-dir new", 2);
  line("weights import tiny.yaml " + files + " --run-dir run", 2);
  EXPECT_THAT(
      line("weights import tiny.yaml " + files + " model.preset=latenciaga_nlp --run-dir new", 3),
      HasSubstr("encoder.join.weight"));
  std::ofstream(*folder_ / "bad.safetensors") << "{\"a\": 1}";
  EXPECT_THAT(line("weights import tiny.yaml bad.safetensors ensemble.members=1 --run-dir new", 3),
              HasSubstr("bad.safetensors: is no whole safetensors file"));
}

}  // namespace
}  // namespace tpudist
