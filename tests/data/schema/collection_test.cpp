#include "data/schema/collection.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "core/error.hpp"
#include "data/schema/feature_schema.hpp"
#include "data/schema/model_family.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

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
  EXPECT_THAT(message_of<ConfigError>([&] { Collection::parse("layot:xla:random"); }),
              ::testing::AllOf(::testing::HasSubstr("did you mean layout:xla:random?"),
                               ::testing::HasSubstr("layout:X:Y and tile:X")));
}

std::vector<std::string> names(const std::vector<Collection>& collections) {
  std::vector<std::string> names;
  for (const Collection& collection : collections) names.push_back(collection.name);
  return names;
}

bool always(const Collection&) {
  return true;
}

TEST(CollectionFolders, AreFoundTpuGraphsFirstThenByName) {
  const TempDir root;
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
  const TempDir root;
  std::filesystem::create_directories(root / "layout/xla:random/x");
  std::filesystem::create_directories(root / "tile/a:b");
  EXPECT_THAT(find_collections(root.path(), always), IsEmpty());
}

TEST(CollectionFolders, ARootThatIsNotThereHasNone) {
  const TempDir root;
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

TEST(FeatureSchema, ColumnsAreReadAsTheyAreWritten) {
  ColumnRange columns;
  for (const ColumnRange& range : {ColumnRange{}, ColumnRange{134, 6}, ColumnRange{0, 1}}) {
    ASSERT_TRUE(parse_columns(to_text(range), 140, columns)) << to_text(range);
    EXPECT_EQ(columns, range);
  }
  ASSERT_TRUE(parse_columns("7", 140, columns));
  EXPECT_EQ(columns, (ColumnRange{7, 1}));
  for (const char* text : {"", "-", "3-", "-3", "4-3", "139-140", "140", "1-2-3", "1 - 2", "x",
                           "99999999999", "None", "1,2"})
    EXPECT_FALSE(parse_columns(text, 140, columns)) << text;
}

TEST(FeatureSchema, SaysWhatIsWrong) {
  EXPECT_EQ(fault_of(kLayoutSchema), "");
  EXPECT_EQ(fault_of(kTileSchema), "");
  FeatureSchema schema = kLayoutSchema;
  schema.node_features = 0;
  EXPECT_EQ(fault_of(schema), "node_features is 0, but must be 1 to 4096");
  schema.node_features = 139;
  EXPECT_EQ(fault_of(schema), "columns 134-139 are not below node_features, 139");
  schema = kLayoutSchema;
  schema.config_features = 1025;
  EXPECT_EQ(fault_of(schema), "config_features is 1025, but must be 1 to 1024");
  schema = kLayoutSchema;
  schema.opcodes = 257;
  EXPECT_EQ(fault_of(schema), "opcodes is 257, but must be 0 to 256");
}

TEST(FeatureSchema, TellsWidthsAndColumns) {
  EXPECT_EQ(to_text(kLayoutSchema),
            "140 node features, 18 configuration features, 120 opcodes, layout columns 134-139, "
            "dimension columns 21-26");
  EXPECT_EQ(to_text(FeatureSchema{.node_features = 1, .config_features = 3}),
            "1 node feature, 3 configuration features, no opcodes");
}

}  // namespace
}  // namespace tpudist::test
