#include "data/schema/collection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace tpudist {
namespace {

TEST(Collection, KnowsFolderAndWidth) {
  const Collection layout = Collection::parse("layout:nlp:default");
  EXPECT_EQ(layout.folder(), "layout/nlp/default");
  EXPECT_FALSE(layout.is_tile());
  EXPECT_EQ(layout.schema, kLayoutSchema);

  const Collection tile = Collection::parse("tile:xla");
  EXPECT_EQ(tile.folder(), "tile/xla");
  EXPECT_TRUE(tile.is_tile());
  EXPECT_EQ(tile.schema, kTileSchema);
}

TEST(Collection, ParsesEachOfTpuGraphs) {
  EXPECT_EQ(Collection::tpugraphs_names().size(), 5u);
  for (const std::string& name : Collection::tpugraphs_names()) {
    EXPECT_EQ(Collection::parse(name).name, name);
  }
}

TEST(Collection, TakesOwnDataUnderAnyWellFormedName) {
  const Collection layout = Collection::parse("layout:My-models:2026_v1");
  EXPECT_EQ(layout.name, "layout:My-models:2026_v1");
  EXPECT_EQ(layout.folder(), "layout/My-models/2026_v1");
  EXPECT_FALSE(layout.is_tile());
  EXPECT_TRUE(Collection::parse("tile:own").is_tile());
  EXPECT_EQ(Collection::parse("tile:own").folder(), "tile/own");
}

TEST(Collection, RefusesNamesThatAreNotWellFormed) {
  for (const char* name : {"",
                           ":",
                           "layout",
                           "layout:",
                           "layout:xla",
                           "layout:xla:",
                           "layout::random",
                           "tile",
                           "tile:",
                           "tile:xla:",
                           "tile:xla:a",
                           "layout:a:b:c",
                           "layout:..:b",
                           "tile:../x",
                           "tile:a/b",
                           "tile:a.b",
                           "tile:a b",
                           "Tile:xla",
                           "layot:xla:random",
                           "layout:xla:r\xc3\xa4ndom",
                           "tile:a\n"}) {
    EXPECT_THROW(Collection::parse(name), ConfigError) << name;
    EXPECT_FALSE(Collection::is_name(name)) << name;
  }
}

TEST(Collection, NamesTheNearestOfTpuGraphsForAMalformedName) {
  try {
    Collection::parse("layot:xla:random");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("did you mean layout:xla:random?"));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("layout:X:Y and tile:X"));
  }
}

}  // namespace
}  // namespace tpudist
