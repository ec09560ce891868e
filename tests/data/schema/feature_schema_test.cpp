#include "data/schema/feature_schema.hpp"

#include <gtest/gtest.h>

#include "data/schema/tpugraphs.hpp"

namespace tpudist {
namespace {

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
}  // namespace tpudist
