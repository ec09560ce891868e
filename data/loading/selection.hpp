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

// Where collections are joined, a graph may be of a split that is trained on in one of them, and of
// another split, on which the trained network is scored, in another one. Throws ConfigError where one
// of the graphs that `training` selects is so; and what select_graphs throws.
void refuse_scored_graphs(const DatasetOptions& training);

// Dataset::selection_hash of a data set of these graphs. Of an entry only name, split, source.hash
// and configs are used.
std::uint64_t hash_selection(const DatasetOptions& options, std::span<const GraphEntry> graphs);

}  // namespace tpudist
