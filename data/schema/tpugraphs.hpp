#pragma once

#include "data/schema/feature_schema.hpp"

namespace tpudist {

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
