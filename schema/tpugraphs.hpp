#pragma once

namespace tpudist {

// The sizes of the TpuGraphs data set on which both data and networks depend.
inline constexpr int kNodeFeatures = 140;         // columns of node_feat
inline constexpr int kMaxNodes = 1 << 20;         // of a graph
inline constexpr int kOpcodes = 120;              // rows of an opcode table
inline constexpr int kLayoutConfigFeatures = 18;  // columns of node_config_feat
inline constexpr int kTileConfigFeatures = 24;    // columns of config_feat

}  // namespace tpudist
