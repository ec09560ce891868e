#include "statistics/intervals/family_clusters.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tpudist {
namespace {

using Names = std::vector<std::string>;

TEST(FamilyClusters, BertsAreOneAmongOthers) {
  const Names families = {"albert", "bert_l2", "bert_l12", "bert_l2", "electra", "transformer"};
  const FamilyClusters clusters = family_clusters(families);
  EXPECT_EQ(clusters.of, (Names{"bert", "bert", "bert", "bert", "bert", "transformer"}));
  EXPECT_EQ(clusters.note,
            "4 of 5 model families are BERTs: they score alike and count as one family");
}

TEST(FamilyClusters, AreFamiliesWhereAllAreBertsOrNone) {
  const Names berts = {"bert", "bert_l2", "talking_heads"}, others = {"bert", "resnet", "resnet"};
  EXPECT_EQ(family_clusters(berts).of, berts);
  EXPECT_EQ(family_clusters(berts).note,
            "3 of 3 model families are BERTs: \"other families\" are other BERTs");
  EXPECT_EQ(family_clusters(others).of, others);
  EXPECT_EQ(family_clusters(others).note, "");
  EXPECT_EQ(family_clusters({}).note, "");
}

}  // namespace
}  // namespace tpudist
