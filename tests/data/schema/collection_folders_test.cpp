#include "data/schema/collection_folders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> names(const std::vector<Collection>& collections) {
  std::vector<std::string> names;
  for (const Collection& collection : collections) names.push_back(collection.name);
  return names;
}

bool always(const Collection&) {
  return true;
}

TEST(CollectionFolders, AreFoundTpuGraphsFirstThenByName) {
  const test::TempDir root;
  for (const char* folder :
       {"layout/zoo/b", "layout/zoo/a", "layout/nlp/random", "layout/xla/default", "tile/xla",
        "tile/aaa", "tile/not good", "layout/v1.2/x", "other/xla/random"}) {
    std::filesystem::create_directories(root / folder);
  }
  std::ofstream(root / "tile/file") << "not a folder";
  EXPECT_THAT(names(find_collections(root.path(), always)),
              ElementsAre("tile:xla", "layout:xla:default", "layout:nlp:random", "layout:zoo:a",
                          "layout:zoo:b", "tile:aaa"));
  EXPECT_THAT(names(find_collections(root.path(), [](const Collection& c) { return c.is_tile(); })),
              ElementsAre("tile:xla", "tile:aaa"));
  EXPECT_THAT(misnamed_folders(root.path()),
              UnorderedElementsAre("tile/not good", "layout/v1.2/x"));
}

TEST(CollectionFolders, AFolderWithAColonIsNoCollectionOfAnotherForm) {
  const test::TempDir root;
  std::filesystem::create_directories(root / "layout/xla:random/x");
  std::filesystem::create_directories(root / "tile/a:b");
  EXPECT_THAT(find_collections(root.path(), always), IsEmpty());
}

TEST(CollectionFolders, ARootThatIsNotThereHasNone) {
  const test::TempDir root;
  EXPECT_THAT(find_collections(root / "none", always), IsEmpty());
  EXPECT_THAT(misnamed_folders(root / "none"), IsEmpty());
}

TEST(CollectionFolders, WhatIsThereNamesTheNearestOrAll) {
  const std::vector<Collection> there{{"tile:xla"}, {"layout:own:v1"}};
  EXPECT_EQ(what_is_there("layout:own:v2", there),
            " (did you mean layout:own:v1, which is there?)");
  EXPECT_EQ(what_is_there("layout:nlp:default", there), " (there are tile:xla, layout:own:v1)");
  EXPECT_EQ(what_is_there("tile:xla", {}), "");
}

}  // namespace
}  // namespace tpudist
