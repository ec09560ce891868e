#include "data/schema/merged_collection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "data/schema/model_family.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MergedCollection, HasTheJoinedNameOfItsParts) {
  const Collection both = merged_collection({"layout:xla:random", "layout:xla:default"});
  EXPECT_EQ(both.name, "layout:xla:default+layout:xla:random");  // sorted
  EXPECT_EQ(merged_collection({"layout:xla:default", "layout:xla:random"}).name, both.name);
  EXPECT_FALSE(both.is_tile());
  EXPECT_FALSE(both.is_tpugraphs());
  const auto parts = parts_of(both);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "layout:xla:default");
  EXPECT_EQ(parts[1].name, "layout:xla:random");
  EXPECT_TRUE(merged_collection({"tile:own", "tile:xla"}).is_tile());
  Collection own{"tile:own"};
  own.schema.node_features = 3;
  EXPECT_EQ(parts_of(own).front().schema, own.schema);
  EXPECT_THROW(merged_collection({}), ConfigError);
  EXPECT_THROW(merged_collection({"tile:xla", "layout:xla:random"}), ConfigError);
  EXPECT_THROW(merged_collection({"tile:xla", "tile:xla"}), ConfigError);
}

TEST(MergedCollection, OverlapsUnlessItIsTheSame) {
  const Collection both{"layout:xla:default+layout:xla:random"}, one{"layout:xla:random"},
      other{"layout:nlp:random"};
  EXPECT_NO_THROW(refuse_overlaps({{"a", both}, {"b", other}, {"c", both}}));
  EXPECT_THAT(message_of<ConfigError>([&] {
                refuse_overlaps({{"a", both}, {"b", other}, {"c", one}});
              }),
              HasSubstr("c is of layout:xla:random, and a of layout:xla:default+layout:xla:random: "
                        "both score the graphs of layout:xla:random"));
}

TEST(MergedCollection, NamesGraphsByTheirIds) {
  EXPECT_EQ(collection_of_id("layout:xla:default:bert"), "layout:xla:default");
  EXPECT_EQ(graph_of_id("layout:xla:default:bert:2"), "bert:2");
  EXPECT_EQ(graph_of_id("tile:xla:fusion.206_10"), "fusion.206_10");
  for (const char* name : {"bert", "layout:xla:default", "layout:xla:default:", "other:a:b:c"}) {
    EXPECT_EQ(collection_of_id(name), "") << name;
    EXPECT_EQ(graph_of_id(name), name);
  }
  EXPECT_EQ(model_family("layout:xla:default:resnet50.4x4.fp16"), "resnet");
}

TEST(MergedCollection, OnlyPatternsWithAColonFitIds) {
  const auto fits = [](const char* pattern, const char* id = "layout:xla:default:bert") {
    return fits_graph({pattern}, id);
  };
  for (const char* pattern : {"be*", "*", "*:bert", "layout:*:bert", "layout:xla:default:*"})
    EXPECT_TRUE(fits(pattern)) << pattern;
  for (const char* pattern : {"l*", "*xla*", "*default*", "?????????????????*", "bert:*", "l*:xla"})
    EXPECT_FALSE(fits(pattern)) << pattern;
  EXPECT_FALSE(fits("bert", "layout:xla:default:bert_2"));
  EXPECT_TRUE(fits("bert:*", "layout:xla:default:bert:2"));  // of a name, too
  EXPECT_TRUE(fits("l*", "lstm"));                           // a graph of one collection
  EXPECT_TRUE(fits_graph({"x", "be*"}, "layout:xla:default:bert"));
  EXPECT_FALSE(fits_graph({}, "layout:xla:default:bert"));
}

}  // namespace
}  // namespace tpudist
