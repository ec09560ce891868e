#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/dataset.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {

// The graphs that Dataset::open opens, in its order: those of the options' splits that pass the
// patterns. Reads only the manifests. Throws ConfigError where a split has no graph left (it says
// what was filtered), DataError as list_graphs.
std::vector<GraphEntry> select_graphs(const DatasetOptions& options);

// The graphs of one split out of `graphs` that pass the patterns; may be empty.
std::vector<GraphEntry> filter_graphs(std::span<const GraphEntry> graphs, std::string_view split,
                                      const std::vector<std::string>& include,
                                      const std::vector<std::string>& exclude);

// Dataset::selection_hash of a data set of these graphs. Of an entry only name, split, source.hash
// and configs are used.
std::uint64_t hash_selection(const DatasetOptions& options, std::span<const GraphEntry> graphs);

}  // namespace tpudist
