#pragma once

#include <string>

namespace tpudist {

// Neighbouring columns of node_feat. None: `count` is 0.
struct ColumnRange {
  int first = 0, count = 0;
  bool operator==(const ColumnRange&) const = default;
};

// What the arrays of a collection's graphs hold: widths, and columns with a meaning. All graphs of
// a collection share the schema. kLayoutSchema and kTileSchema are
// TpuGraphs'.
struct FeatureSchema {
  bool tile = false;        // a configuration belongs to the whole graph, not to each of some nodes
  int node_features = 0;    // columns of node_feat
  int config_features = 0;  // of node_config_feat (layout) or config_feat (tile)
  int opcodes = 0;          // opcodes are below this number; 0: graphs have no node_opcode
  // Columns of node_feat with the minor-to-major order of a node's layout. If a layout collection
  // names these columns, its configurations have such values too.
  ColumnRange layout_columns = {};
  // Columns with the sizes of a node's dimensions, 0 beyond its last.
  ColumnRange dimension_columns = {};

  bool operator==(const FeatureSchema&) const = default;
};

// Upper limits of a schema.
inline constexpr int kMostNodeFeatures = 4096, kMostConfigFeatures = 1024, kMostOpcodes = 256;

// The fault of a schema's numbers, such as "node_features is 0, but must be 1 to 4096"; "" if none.
std::string fault_of(const FeatureSchema& schema);

// Calls field(name, member) for each int and ColumnRange that describes a schema, with its name in
// shards, manifests and configurations.
template <typename Schema, typename Field>
void schema_fields(Schema& schema, const Field& field) {
  field("node_features", schema.node_features);
  field("config_features", schema.config_features);
  field("opcodes", schema.opcodes);
  field("layout_columns", schema.layout_columns);
  field("dimension_columns", schema.dimension_columns);
}

// "7 node features, 3 configuration features, no opcodes", with the columns that have a meaning.
std::string to_text(const FeatureSchema& schema);

// The text of a range as users write it: "134-139", or "none".
std::string to_text(const ColumnRange& columns);
// Reads such a text. Returns false for any other text, or if a column is not below `columns_of`.
bool parse_columns(const std::string& text, int columns_of, ColumnRange& columns);

// The features of the TpuGraphs data set, of HLO files and of synthetic graphs. Code that reads
// graphs of any collection uses their FeatureSchema instead.
inline constexpr int kNodeFeatures = 140;         // columns of node_feat
inline constexpr int kMaxNodes = 1 << 20;         // of a graph
inline constexpr int kOpcodes = 120;              // rows of an opcode table
inline constexpr int kLayoutConfigFeatures = 18;  // columns of node_config_feat
inline constexpr int kTileConfigFeatures = 24;    // columns of config_feat

inline constexpr FeatureSchema kLayoutSchema = {
    .tile = false,
    .node_features = kNodeFeatures,
    .config_features = kLayoutConfigFeatures,
    .opcodes = kOpcodes,
    .layout_columns = {134, 6},
    .dimension_columns = {21, 6},
};
inline constexpr FeatureSchema kTileSchema = {
    .tile = true,
    .node_features = kNodeFeatures,
    .config_features = kTileConfigFeatures,
    .opcodes = kOpcodes,
    .layout_columns = {134, 6},
    .dimension_columns = {21, 6},
};

}  // namespace tpudist
