#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/dataset.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {

// The graphs that Dataset::open opens, in its order: those of the options' splits that pass the
// patterns. Reads only the manifests. Throws ConfigError, with the filters, if a split has no graph
// left, and DataError as list_graphs.
std::vector<GraphEntry> select_graphs(const DatasetOptions& options);

// The graphs of one split in `graphs` that pass the patterns; may be empty.
std::vector<GraphEntry> filter_graphs(std::span<const GraphEntry> graphs, std::string_view split,
                                      const std::vector<std::string>& include,
                                      const std::vector<std::string>& exclude);

// Dataset::selection_hash of a data set of these graphs. Uses only name, split, source.hash and
// configs of an entry.
std::uint64_t hash_selection(const DatasetOptions& options, std::span<const GraphEntry> graphs);

}  // namespace tpudist
