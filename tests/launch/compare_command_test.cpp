// `tpudist compare` as a user calls it.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/results/system_case.hpp"

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::TempDir;
using testing::write_system_run;

// Four runs of a good system and four of a bad one.
class CompareCommand : public ::testing::Test {
 protected:
  CompareCommand() {
    for (int seed = 1; seed <= 4; ++seed) {
      write_system_run(folder_ / ("a" + std::to_string(seed)), seed, 4, 3);
      write_system_run(folder_ / ("b" + std::to_string(seed)), seed, 12, 7);
    }
  }

  Outcome call(const std::string& arguments) const {
    return testing::run_program("compare " + arguments + " 2>&1",
                                "cd " + folder_.path().string() + " && ");
  }

  TempDir folder_;
};

TEST_F(CompareCommand, AnswersTwoQuestionsOfFourRunsEach) {
  const Outcome outcome = call("a1 a2 a3 a4 --with b1 b2 b3 b4 --json both.json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("valid split: 6 graphs of 4 families"), HasSubstr("4 runs: a1, a2"),
                    HasSubstr("these graphs, other runs"), HasSubstr("p 0.0286 (exact, all of 70)"),
                    HasSubstr("4 families cannot reach 0.05 (smallest 0.125)"),
                    HasSubstr("training graphs, out of fold: 2 graphs of 2 families")));
  const auto json = nlohmann::json::parse(read_text_file(folder_ / "both.json"));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_NEAR(json[0].at("these_graphs").at("test").at("p"), 2 / 70.0, 1e-12);
  EXPECT_TRUE(json[0].at("other_families").at("these_models").at("p").is_null());
}

TEST_F(CompareCommand, TakesTwoFilesOfPredictions) {
  const Outcome outcome = call("a1/predictions.h5 b1/predictions.h5");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("2 members one by one"));
}

TEST_F(CompareCommand, SaysWhereOneRunIsNotEnough) {
  const Outcome outcome = call("a1 b1 --by runs");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("not enough: both sides need two runs"),
                                    Not(HasSubstr("exchanging labels"))));
}

TEST_F(CompareCommand, RefusesWithOneLine) {
  EXPECT_EQ(call("a1").exit_code, 2);
  EXPECT_THAT(call("a1 a2 b1").output, HasSubstr("3 inputs; name two"));
  EXPECT_THAT(call("a1 nothing").output, HasSubstr("nothing: there is no such folder"));
  EXPECT_THAT(call("a1 b1 --with b2").output, HasSubstr("runs of different settings"));
  EXPECT_THAT(call("a1 a1 --with b1").output, HasSubstr("one and the same training"));
}

}  // namespace
}  // namespace tpudist
