#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "data/schema/collection.hpp"
#include "data/shards/shard_file.hpp"

namespace tpudist {

// Checks one graph of a shard: every chunk inflates, shapes agree with `graph`, nodes, opcodes and
// codes are in range, features are finite, run times positive (0 only in a test split), no node is
// configured twice, and config_group has equal numbers exactly for equal configurations. With
// `npz`, every array is compared with the source bit by bit. Throws DataError.
void verify_graph(const std::filesystem::path& shard, const GraphSummary& graph,
                  const Collection& collection, std::string_view split,
                  const std::optional<std::filesystem::path>& npz);

}  // namespace tpudist
