#include "results/system_scores.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "results/comparison_text.hpp"
#include "results/system_inputs.hpp"
#include "tests/results/system_case.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;
using testing::write_system_run;

// Three runs of each of two systems, of which A ranks better.
class Systems : public ::testing::Test {
 protected:
  Systems() {
    for (int seed = 1; seed <= 3; ++seed) {
      a_.push_back(write_system_run(folder_ / ("a" + std::to_string(seed)), seed, 4, 3).string());
      b_.push_back(write_system_run(folder_ / ("b" + std::to_string(seed)), seed, 12, 7).string());
    }
  }

  std::string refusal(const std::vector<std::string>& a, const std::vector<std::string>& b) const {
    return testing::message_of<Error>([&] {
      system_pair(read_system(a), read_system(b), JudgedGraphs::valid, RunUnit::automatic);
    });
  }

  TempDir folder_;
  std::vector<std::string> a_, b_;
};

TEST_F(Systems, AreComparedByRuns) {
  const SystemPair pair =
      system_pair(read_system(a_), read_system(b_), JudgedGraphs::valid, RunUnit::automatic);
  EXPECT_EQ(pair.a.unit, MatrixRows::runs);
  EXPECT_EQ(pair.a.scores.run_count(), 3);
  EXPECT_EQ(pair.a.scores.graph_count(), 6);
  EXPECT_EQ(pair.a.scores.family_count(), 4);
  const Comparison found = compare(pair.a.scores, pair.b.scores);
  EXPECT_GT(found.difference, 0.05);
  const std::string text = comparison_text(pair, found);
  EXPECT_THAT(text, AllOf(HasSubstr("kendall_tau, valid split: 6 graphs of 4 families"),
                          HasSubstr("3 and 3 runs cannot reach 0.05 (smallest 0.1)"),
                          HasSubstr("4 families cannot reach 0.05 (smallest 0.125)"),
                          HasSubstr("cannot see failures rarer than about 1 in 4"),
                          HasSubstr("A wins again")));
  const auto json = comparison_json(pair, found);
  EXPECT_TRUE(json.at("these_graphs").at("test").at("p").is_null());
  EXPECT_EQ(json.at("a").at("runs").size(), 3u);
  EXPECT_EQ(json.at("difference"), found.difference);
}

TEST_F(Systems, OfOneRunEachAreComparedByMembers) {
  const SystemPair pair = system_pair(read_system({a_.data(), 1}), read_system({b_.data(), 1}),
                                      JudgedGraphs::valid, RunUnit::automatic);
  EXPECT_EQ(pair.a.unit, MatrixRows::members);
  EXPECT_EQ(pair.a.scores.run_count(), 2);
  // A side of several runs is then taken apart, too: an ensemble is no match for a member.
  const SystemPair mixed = system_pair(read_system(a_), read_system({b_.data(), 1}),
                                       JudgedGraphs::valid, RunUnit::automatic);
  EXPECT_EQ(mixed.a.unit, MatrixRows::members);
  EXPECT_EQ(mixed.a.scores.run_count(), 6);
}

TEST_F(Systems, OfOneRunEachSayWhatIsMissing) {
  const SystemPair pair = system_pair(read_system({a_.data(), 1}), read_system({b_.data(), 1}),
                                      JudgedGraphs::valid, RunUnit::runs);
  EXPECT_THAT(comparison_text(pair, compare(pair.a.scores, pair.b.scores)),
              AllOf(HasSubstr("not enough: both sides need two runs"),
                    HasSubstr("these models only where a side has one run"),
                    Not(HasSubstr("exchanging labels"))));
  EXPECT_THAT(system_text(pair.a),
              AllOf(HasSubstr("not enough: one run has no spread"), HasSubstr("this model only")));
}

TEST_F(Systems, HaveColumnsOutOfFold) {
  const SystemScores found =
      system_scores(read_system(a_), JudgedGraphs::out_of_fold, RunUnit::automatic);
  EXPECT_EQ(found.unit, MatrixRows::out_of_fold);
  EXPECT_EQ(found.scores.run_count(), 3);
  EXPECT_EQ(found.scores.graph_count(), 2);
  EXPECT_TRUE(found.scores.is_out_of_fold());
}

TEST_F(Systems, LeaveOutGraphsThatHaveTwoEqualConfigurations) {
  auto run = testing::system_run(9, 4);
  auto& predictions = run.graphs[4];
  run.header.graphs[4].configs = run.header.graphs[4].rows = 2;
  predictions.configs = {0, 1};
  predictions.runtime = {10, 10};
  predictions.scores = {{1, 2}, {1, 2}};
  testing::write_text(folder_ / "two" / "config.yaml", testing::config_text(9, 0, 2));
  run.write(folder_ / "two" / "predictions.h5");
  const std::string input = (folder_ / "two").string();
  const SystemScores found =
      system_scores(read_system({&input, 1}), JudgedGraphs::valid, RunUnit::runs);
  EXPECT_EQ(found.scores.graph_count(), 5);
  EXPECT_THAT(found.left_out, ::testing::Contains(HasSubstr("inception_v3_batch_128_train")));
  EXPECT_THAT(refusal(a_, {input}), HasSubstr("the data differ"));
}

TEST_F(Systems, RefuseWhatIsNotOneSystem) {
  EXPECT_THAT(refusal({a_[0], b_[0]}, {b_[1]}), HasSubstr("are runs of different settings"));
  EXPECT_THAT(refusal({a_[0], a_[0]}, b_), HasSubstr("one and the same training"));
  EXPECT_THAT(refusal(a_, {a_[1]}), HasSubstr("stands on both sides"));
  EXPECT_THAT(refusal({a_[0] + "x"}, b_), HasSubstr("no such folder"));
  EXPECT_THAT(refusal({a_[0] + ":1"}, b_), HasSubstr("is no sweep"));
}

}  // namespace
}  // namespace tpudist
