#include "results/scores/joined_predictions.hpp"

#include "core/error.hpp"
#include "tests/results/scores/predictions_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

class JoinedPredictionsTest : public FolderTest {
 protected:
  std::shared_ptr<const PredictionsFile> file(const PredictionsCase& given,
                                              const std::string& name) const {
    given.write(folder_ / name);
    return std::make_shared<PredictionsFile>(folder_ / name);
  }
  // What is said of joining the case with one that `change` changed.
  template <typename Change>
  std::string message(const Change& change) const {
    PredictionsCase other;
    other.header.runs[0].init_seed = 9;
    other.header.runs[0].parameter_hash = 10;
    change(other);
    return message_of<Error>([&] {
      JoinedPredictions joined({file(PredictionsCase(), "a.h5"), file(other, "b.h5")});
      for (std::size_t g = 0; g < joined.header().graphs.size(); ++g)
        joined.read(static_cast<int>(g));
    });
  }
};

TEST_F(JoinedPredictionsTest, PutsMembersSideBySide) {
  PredictionsCase other;
  other.header.runs[0].init_seed = 9;
  other.header.runs[0].parameter_hash = 10;
  other.graphs[2].scores[0] = {7, 8, 9};
  other.header.graphs.erase(other.header.graphs.begin());  // it lacks bert
  other.graphs.erase(other.graphs.begin());
  const JoinedPredictions joined({file(PredictionsCase(), "a.h5"), file(other, "b.h5")});
  EXPECT_THAT(joined.header().runs, SizeIs(2));
  ASSERT_THAT(joined.header().members, SizeIs(6));
  EXPECT_EQ(joined.header().members[4].run, 1);
  EXPECT_EQ(joined.header().members[4].number, 1);
  ASSERT_THAT(joined.header().graphs, SizeIs(3));
  const PredictionRows bert = joined.read(0);
  EXPECT_EQ(bert.scores[0], (std::vector<double>{1, 3, 2}));
  EXPECT_THAT(bert.scores[3], Each(IsNan()));
  EXPECT_FALSE(joined.header().graphs[0].held_out[3]);
  EXPECT_EQ(joined.read(1).scores[4], (std::vector<double>{5, 4, 6}));
}

TEST_F(JoinedPredictionsTest, RefusesFilesThatDoNotBelongTogether) {
  EXPECT_THAT(message([](PredictionsCase& other) { other.header.runs[0].step = 200; }),
              HasSubstr("is of step 100, "));
  EXPECT_THAT(message([](PredictionsCase& other) { other.header.runs[0].fold_hash = 7; }),
              HasSubstr("were trained with other folds"));
  EXPECT_THAT(message([](PredictionsCase& other) { other.header.most_rows = 3; }),
              HasSubstr("has all rows of a graph, "));
  EXPECT_THAT(
      message([](PredictionsCase& other) { other.header.collection = "layout:nlp:random"; }),
      HasSubstr("combine predictions of one collection"));
  EXPECT_THAT(message([](PredictionsCase& other) { other.header.graphs[0].configs = 9; }),
              HasSubstr("3 rows of 9 configurations, elsewhere 3 of 4"));
  EXPECT_THAT(message([](PredictionsCase& other) { other.graphs[0].runtime[0] = 11; }),
              HasSubstr("rows or run times of bert are not those of the other files"));
}

// A copy, or weights that were imported twice under other seeds.
TEST_F(JoinedPredictionsTest, RefusesOneTrainingGivenTwice) {
  const auto with = [&](std::uint64_t weights, std::int64_t seed) {
    return message([=](PredictionsCase& other) {
      other.header.runs[0].parameter_hash = weights;
      other.header.runs[0].init_seed = seed;
    });
  };
  EXPECT_THAT(with(1, 5), AllOf(HasSubstr("member 0 of the seeds 5 and 6 is in "),
                                HasSubstr("b.h5, with the same weights; give it once")));
  EXPECT_THAT(with(1, 9), HasSubstr("b.h5, with the same weights; give it once"));
  EXPECT_THAT(with(0, 5), HasSubstr("b.h5; give it once"));  // nothing tells them apart
  // A part of the run has another hash and may have the same members.
  EXPECT_THAT(message([](PredictionsCase& other) {
                other.header.runs[0].init_seed = 5;
                other.header.members[2].number = 7;
              }),
              HasSubstr("b.h5; give it once"));
}

// Two imports have the seeds of the experiment file and differ by their weights.
TEST_F(JoinedPredictionsTest, TakesOtherWeightsOfEqualSeedsForAnotherTraining) {
  PredictionsCase other;
  other.header.runs[0].parameter_hash = 10;
  const JoinedPredictions joined({file(PredictionsCase(), "a.h5"), file(other, "b.h5")});
  EXPECT_THAT(joined.header().members, SizeIs(6));
  EXPECT_EQ(joined.header().runs[1].source, (folder_ / "b.h5").string());
}

// Under two recipes the same weights are named, and taken.
TEST_F(JoinedPredictionsTest, TakesEqualWeightsOfTwoRecipes) {
  PredictionsCase other;
  other.header.runs[0].variant_hash = 11;
  EXPECT_THAT(
      JoinedPredictions({file(PredictionsCase(), "a.h5"), file(other, "b.h5")}).header().members,
      SizeIs(6));
}

}  // namespace
}  // namespace tpudist::test
