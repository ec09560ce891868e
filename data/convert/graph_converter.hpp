#pragma once

#include <cstdint>
#include <string_view>

#include "data/convert/graph_schema.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/config_codec.hpp"
#include "data/shards/shard_file.hpp"

namespace tpudist {

// Checks one NPZ file and appends its graph to a shard, streaming the configurations: memory
// depends on the graph's nodes and edges and on the number (not the size) of its configurations.
// All written data are verified: each block of codes is decoded and compared with the source's
// bits, each deflated chunk is inflated and compared, and so are narrowed features and states.
// After a DataError (a bad file), nothing of the graph stays in the shard.
void convert_graph(const NpzReader& npz, const Collection& collection, std::string_view split,
                   const SourceFile& source, ShardWriter& shard, ConfigEncoder::Limits limits = {});

// The most bytes that convert_graph holds, to share a budget between several calls.
std::uint64_t conversion_bytes(const GraphSizes& sizes, const FeatureSchema& schema,
                               ConfigEncoder::Limits limits = {});

}  // namespace tpudist
