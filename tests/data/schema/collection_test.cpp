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
  EXPECT_EQ(layout.config_features(), 18);

  const Collection tile = Collection::parse("tile:xla");
  EXPECT_EQ(tile.folder(), "tile/xla");
  EXPECT_TRUE(tile.is_tile());
  EXPECT_EQ(tile.config_features(), 24);
}

TEST(Collection, ParsesEachOfItsNames) {
  EXPECT_EQ(Collection::all_names().size(), 5u);
  for (const std::string& name : Collection::all_names()) {
    EXPECT_EQ(Collection::parse(name).name, name);
  }
}

TEST(Collection, NamesTheNearestForAnUnknownName) {
  try {
    Collection::parse("layout:xla:randm");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("did you mean 'layout:xla:random'"));
  }
  EXPECT_THROW(Collection::parse(""), ConfigError);
}

}  // namespace
}  // namespace tpudist
