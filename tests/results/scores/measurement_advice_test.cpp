#include "results/scores/measurement_advice.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/results/scores/system_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

// Runs on graphs of four families with 30 configurations, three of them within 2 % of the best.
class MeasurementAdviceTest : public FolderTest {
 protected:
  RankingRun run(const std::string& name, int seed, double noise) {
    const auto path = write_system_run(folder_ / name, seed, noise);
    return {path, system_run(seed, noise).header.runs[0].parameter_hash, {0, 1}};
  }
  static MeasurementAdvice advise(const std::vector<RankingRun>& runs, double confidence = 0.8) {
    return advise_measurements(runs, {}, 0.02, confidence);
  }
};

TEST_F(MeasurementAdviceTest, SaysHowManyOfTheFirstToMeasure) {
  const RankingRun run = this->run("right", 1, 0);
  const MeasurementAdvice advice = advise({run});
  EXPECT_EQ(advice.promise.count, 1);
  EXPECT_EQ(advice.promise.graphs, 8);
  EXPECT_THAT(advice.text(30),
              AllOf(StartsWith("measure the first 1: with 80 % confidence the best of them is "
                               "within 2 % of the best configuration (from 4 families)\n"),
                    HasSubstr("are BERTs")));  // ALBERT, BERT and ELECTRA are kin
  EXPECT_THAT(advice.text(1), StartsWith("measure all 1: "));
  EXPECT_THAT(advice.text(31),
              HasSubstr("; those lists have at most 30 configurations, so this one may take more"));
  EXPECT_EQ(advice.json().at("count"), 1);
  const MeasurementAdvice none = advise({run}, 0.9);
  EXPECT_THAT(none.text(30),
              StartsWith("cannot say how many to measure: 90 % confidence needs unseen graphs of 9 "
                         "families; these runs have 4\n"));
  EXPECT_TRUE(none.json().at("count").is_null());
  EXPECT_EQ(none.json().at("least_families"), 9);
}

// The order of members that take no part says nothing of those that do.
TEST_F(MeasurementAdviceTest, LearnsFromTheMembersThatTakePart) {
  const RankingRun good = run("good", 1, 0), bad = run("bad", 2, 40);
  EXPECT_GT(advise({good, bad}).promise.count, 1);
  RankingRun left_out = bad;
  left_out.used = {};
  EXPECT_EQ(advise({good, left_out}).promise.count, 1);
  EXPECT_THAT(advise({left_out}).unknown, HasSubstr("no graph that members never saw"));
  // One member alone scores one of the two training graphs.
  RankingRun one = good;
  one.used = {0};
  EXPECT_EQ(advise({one}).promise.graphs, 7);
}

TEST_F(MeasurementAdviceTest, SaysWhatARunLacks) {
  const RankingRun good = run("good", 1, 0), none{folder_ / "none", 3, {0, 1}};
  RankingRun other = good;
  ++other.parameter_hash;
  EXPECT_THAT(advise({other}).unknown, HasSubstr("is of other weights than those that rank"));
  EXPECT_THAT(advise({none}).text(30),
              AllOf(StartsWith("cannot say how many to measure: "),
                    HasSubstr("none has no predictions of graphs that its members never saw "
                              "(predictions.rows)")));
  EXPECT_THAT(advise({none}).json().at("unknown").get<std::string>(), HasSubstr("no predictions"));
  EXPECT_EQ(advise({none, good}).promise.count, 1);
  std::ofstream(folder_ / "good/predictions.h5") << "no HDF5";
  EXPECT_THAT(advise({good}).unknown, HasSubstr("good/predictions.h5"));
}

}  // namespace
}  // namespace tpudist::test
