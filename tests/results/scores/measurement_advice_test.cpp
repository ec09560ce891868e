#include "results/scores/measurement_advice.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/results/scores/system_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

// Runs on graphs of four families with 30 configurations, of which three are within 2 % of the best.
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
  const MeasurementAdvice right = advise({run("right", 1, 0)});
  EXPECT_EQ(right.promise.count, 1);
  EXPECT_EQ(right.promise.graphs, 8);
  EXPECT_EQ(right.longest, 30);
  EXPECT_THAT(right.text(30), StartsWith("measure the first 1: with 80 % confidence the best of "
                                         "them is within 2 % of the best configuration (from 4 "
                                         "families)\n"));
  // ALBERT, BERT and ELECTRA are kin.
  EXPECT_THAT(right.text(30), HasSubstr("are BERTs"));
  EXPECT_THAT(right.text(1), StartsWith("measure all 1: "));
  EXPECT_THAT(right.text(31),
              HasSubstr("; those lists have at most 30 configurations, so this one may take more"));
  EXPECT_EQ(right.json().at("count"), 1);
  const MeasurementAdvice wrong = advise({run("wrong", 1, 12)});
  EXPECT_GT(wrong.promise.count, 1);
  EXPECT_GE(wrong.promise.count, advise({run("wrong", 1, 12)}, 0.4).promise.count);
  EXPECT_GE(wrong.promise.count,
            advise_measurements(std::vector{run("wrong", 1, 12)}, {}, 0.2, 0.8).promise.count);
}

TEST_F(MeasurementAdviceTest, SaysHowManyFamiliesAPromiseTakes) {
  const MeasurementAdvice advice = advise({run("right", 1, 0)}, 0.9);
  EXPECT_EQ(advice.promise.count, 0);
  EXPECT_THAT(advice.text(30),
              StartsWith("how many to measure is not known: 4 families of unseen graphs cannot "
                         "promise 90 % confidence, 9 can\n"));
  EXPECT_TRUE(advice.json().at("count").is_null());
  EXPECT_EQ(advice.json().at("least_families"), 9);
}

// The order of members that take no part says nothing of those that do.
TEST_F(MeasurementAdviceTest, LearnsFromTheMembersThatTakePart) {
  const RankingRun good = run("good", 1, 0), bad = run("bad", 2, 40);
  const std::int64_t alone = advise({good}).promise.count,
                     both = advise({good, bad}).promise.count;
  EXPECT_LT(alone, both);
  RankingRun left_out = bad;
  left_out.used = {};
  EXPECT_EQ(advise({good, left_out}).promise.count, alone);
  EXPECT_THAT(advise({left_out}).unknown, HasSubstr("no graph that members never saw"));
  // One member alone scores one of the two training graphs.
  RankingRun one = good;
  one.used = {0};
  EXPECT_EQ(advise({one}).promise.graphs, 7);
}

TEST_F(MeasurementAdviceTest, SaysWhatARunLacks) {
  const RankingRun good = run("good", 1, 0);
  RankingRun other = good;
  ++other.parameter_hash;
  EXPECT_THAT(advise({other}).unknown, HasSubstr("is of other weights than those that rank"));
  EXPECT_EQ(advise({other}).promise.count, 0);
  RankingRun none{folder_ / "none", 3, {0, 1}};
  EXPECT_THAT(advise({none}).text(30),
              AllOf(StartsWith("how many to measure is not known: "),
                    HasSubstr("none has no predictions of graphs that its members never saw "
                              "(predictions.rows)")));
  EXPECT_THAT(advise({none}).json().at("unknown").get<std::string>(), HasSubstr("no predictions"));
  EXPECT_EQ(advise({none, good}).promise.count, 1);
  std::ofstream(folder_ / "good/predictions.h5") << "no HDF5";
  EXPECT_THAT(advise({good}).unknown, HasSubstr("good/predictions.h5"));
}

}  // namespace
}  // namespace tpudist::test
