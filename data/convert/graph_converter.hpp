#pragma once

#include <cstdint>
#include <string_view>

#include "data/convert/graph_schema.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/config_codec.hpp"
#include "data/shards/shard_writer.hpp"

namespace tpudist {

// Checks one NPZ file and appends its graph to a shard, streaming its configurations: memory
// depends on the graph's nodes and edges and on the number (not the size) of its configurations.
// What is written is proven: each block of codes is decoded and compared with the source's bits,
// each deflated chunk is inflated and compared, and so are narrowed features and states. Nothing is
// left in the shard when it throws DataError (a bad file).
void convert_graph(const NpzReader& npz, const Collection& collection, std::string_view split,
                   const SourceFile& source, ShardWriter& shard, ConfigEncoder::Limits limits = {});

// Bytes that convert_graph may hold, for sharing a budget between several of them.
std::uint64_t conversion_bytes(const GraphSizes& sizes, ConfigEncoder::Limits limits = {});

}  // namespace tpudist
