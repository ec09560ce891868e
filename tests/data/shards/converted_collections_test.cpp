#include "data/shards/converted_collections.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;

void add_manifest(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "manifest.json") << "{}";
}

std::string refusal(const std::filesystem::path& root, const std::string& collection) {
  return test::message_of<ConfigError>(
      [&] { require_shards(root, Collection::parse(collection), "give --data"); });
}

TEST(ConvertedCollections, AreThoseWithAManifest) {
  const test::TempDir root;
  add_manifest(root / "layout/own/v1");
  add_manifest(root / "layout/xla/random");
  std::filesystem::create_directories(root / "layout/xla/default/train");
  const auto found = converted_collections(root.path());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "layout:xla:random");
  EXPECT_EQ(found[1].name, "layout:own:v1");
}

TEST(ConvertedCollections, AMissingOneIsRefusedWithTheNearestThatIsThere) {
  const test::TempDir root;
  add_manifest(root / "layout/own/v1");
  EXPECT_EQ(refusal(root.path(), "layout:own:v1"), "");
  EXPECT_EQ(refusal(root.path(), "layout:own:v2"),
            root.path().string() +
                ": holds no shards of layout:own:v2 (did you mean layout:own:v1, which is there?); "
                "give --data");
  EXPECT_THAT(refusal(root.path(), "tile:xla"),
              HasSubstr("holds no shards of tile:xla (there are layout:own:v1); give --data"));
  EXPECT_THAT(refusal(root / "none", "tile:xla"), HasSubstr("no such folder of shards"));
}

}  // namespace
}  // namespace tpudist
