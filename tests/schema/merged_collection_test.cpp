#include "schema/merged_collection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "schema/model_family.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;

TEST(MergedCollection, HasTheJoinedNameOfItsParts) {
  const Collection both = merged_collection({"layout:xla:random", "layout:xla:default"});
  EXPECT_EQ(both.name, "layout:xla:random+layout:xla:default");
  EXPECT_FALSE(both.is_tile());
  EXPECT_FALSE(both.is_tpugraphs());
  const auto parts = parts_of(both);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "layout:xla:random");
  EXPECT_EQ(parts[1].name, "layout:xla:default");
  EXPECT_TRUE(merged_collection({"tile:own", "tile:xla"}).is_tile());
  Collection own{"tile:own"};
  own.schema.node_features = 3;
  EXPECT_EQ(parts_of(own).front().schema, own.schema);
  EXPECT_THROW(merged_collection({}), ConfigError);
  EXPECT_THROW(merged_collection({"tile:xla", "layout:xla:random"}), ConfigError);
  EXPECT_THROW(merged_collection({"tile:xla", "tile:xla"}), ConfigError);
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
  EXPECT_TRUE(fits_graph({"be*"}, "layout:xla:default:bert"));
  EXPECT_TRUE(fits_graph({"layout:*:bert"}, "layout:xla:default:bert"));
  EXPECT_FALSE(fits_graph({"bert"}, "layout:xla:default:bert_2"));
}

}  // namespace
}  // namespace tpudist
