#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/dataset.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {

// The graphs that Dataset::open opens, in its order: those of the options' splits that their patterns
// leave. Reads the manifests only. Throws ConfigError where a split has no graph left and says what was
// filtered, DataError as list_graphs.
std::vector<GraphEntry> select_graphs(const DatasetOptions& options);

// Of one split, whose graphs are listed already: those that the patterns leave, which may be none.
std::vector<GraphEntry> filter_graphs(std::span<const GraphEntry> graphs, std::string_view split,
                                      const std::vector<std::string>& include,
                                      const std::vector<std::string>& exclude);

// Dataset::selection_hash of a data set of these graphs. Of an entry count name, split, source_hash and
// configs.
std::uint64_t hash_selection(const DatasetOptions& options, std::span<const GraphEntry> graphs);

}  // namespace tpudist
