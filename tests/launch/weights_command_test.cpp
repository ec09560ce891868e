#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/tiny_folder.hpp"

namespace tpudist::test {
namespace {

class WeightsCommand : public TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=3", "train.last_evaluation=none"});
    train("run");
  }

  // The scores of each graph and member on the validation split.
  nlohmann::json scores(const std::string& run_folder) const {
    output_of(call("evaluate " + run_folder + " --json scores.json --quiet"));
    nlohmann::json scores = nlohmann::json::parse(read_text_file(*folder_ / "scores.json"));
    scores.erase("step");
    return scores;
  }
};

TEST_F(WeightsCommand, ImportsWhatItExportedWithEqualScores) {
  EXPECT_THAT(output_of(call("weights export run w.safetensors")),
              HasSubstr("member 1: w-member-1.safetensors"));
  const Outcome imported = call(
      "weights import tiny.yaml w-member-0.safetensors w-member-1.safetensors --run-dir imported");
  ASSERT_EQ(imported.exit_code, 0) << imported.output;
  EXPECT_EQ(scores("imported"), scores("run"));
  EXPECT_EQ(call("predict imported --split test --csv out.csv").exit_code, 0);
  EXPECT_EQ(call("ensemble imported --split valid").exit_code, 0);
  // The weights that it was imported from are the same training.
  EXPECT_EQ(call("ensemble imported run --split valid").exit_code, 2);
  EXPECT_THAT(output_of(call("train tiny.yaml --run-dir imported --resume")),
              HasSubstr("steps: 3"));
}

TEST_F(WeightsCommand, TakesOverridesBesideFiles) {
  ASSERT_EQ(call("weights export run one.safetensors --member 1").exit_code, 0);
  output_of(call("weights import tiny.yaml one.safetensors ensemble.members=1 --run-dir one"));
  EXPECT_EQ(scores("one").at("members").size(), 1u);
}

TEST_F(WeightsCommand, TellsMistakesInOneLine) {
  const auto line = [&](const std::string& arguments, int code) {
    const Outcome outcome = call(arguments + "");
    EXPECT_EQ(outcome.exit_code, code) << arguments << ": " << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("tpudist: error: ")) << arguments;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
    return outcome.output;
  };
  line("weights export run w.safetensors --member 7", 2);
  line("weights export run missing/w.safetensors", 2);
  ASSERT_EQ(call("weights export run w.safetensors").exit_code, 0);
  const std::string files = "w-member-0.safetensors w-member-1.safetensors";
  line("weights import tiny.yaml w-member-0.safetensors --run-dir new", 2);
  line("weights import tiny.yaml " + files + " --run-dir run", 2);
  EXPECT_THAT(
      line("weights import tiny.yaml " + files + " model.preset=latenciaga_nlp --run-dir new", 3),
      HasSubstr("tensor \"blocks.0.sage.lin_l.weight\" has the shape [64, 32], but"));
  std::ofstream(*folder_ / "bad.safetensors") << "{\"a\": 1}";
  EXPECT_THAT(line("weights import tiny.yaml bad.safetensors ensemble.members=1 --run-dir new", 3),
              HasSubstr("bad.safetensors: is no whole safetensors file"));
}

}  // namespace
}  // namespace tpudist::test
