#include "train/scores/score_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

TEST(FinalScore, IsTheMeanOfTheCollectionsWhateverTheirNames) {
  const std::vector<CollectionScore> scores{{"layout:own:x", 0.5}, {"tile:xla", 0.9}};
  EXPECT_DOUBLE_EQ(final_score(scores), 0.7);
  EXPECT_TRUE(std::isnan(final_score({})));
}

TEST(FinalScore, NamesWhatItCoversAndWhatIsMissingOfTheFive) {
  const std::vector<CollectionScore> scores{{"layout:own:x", 0.5}, {"tile:xla", 0.9}};
  EXPECT_EQ(final_score_text(scores),
            "final score 0.7000, members together: mean of 2 collections, layout:own:x 0.5000, "
            "tile:xla 0.9000 "
            "(without layout:xla:default, layout:xla:random, layout:nlp:default, "
            "layout:nlp:random)\n");
}

TEST(FinalScore, OfAllFiveNamesNoneAsMissing) {
  std::vector<CollectionScore> scores;
  for (const std::string& name : Collection::tpugraphs_names()) scores.push_back({name, 0.25});
  const std::string text = final_score_text(scores);
  EXPECT_EQ(text.find("without"), std::string::npos) << text;
  EXPECT_EQ(text.find("final score 0.2500, members together: mean of 5 collections, "), 0u) << text;
}

TEST(FinalScore, IsUndefinedWhereOneCollectionHasNoScore) {
  const std::vector<CollectionScore> scores{{"layout:own:x", kUndefined}, {"tile:xla", 0.9}};
  EXPECT_TRUE(std::isnan(final_score(scores)));
  EXPECT_EQ(final_score_text(scores).find(
                "final score undefined, members together: mean of 2 collections, "
                "layout:own:x undefined, tile:xla 0.9000"),
            0u);
}

}  // namespace
}  // namespace tpudist
