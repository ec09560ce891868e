#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/loading/cache_file.hpp"
#include "data/loading/graph_reduction.hpp"
#include "data/loading/open_graph.hpp"

namespace tpudist {

struct DatasetOptions;

// Graphs of a data set in a cache file: the whole content of each OpenGraph by the options
// (duplicates merged, graphs reduced), with or without the configurations.

// Increase this number whenever the same key would stand for different bytes.
inline constexpr std::uint64_t kGraphRecordsVersion = 3;

// The estimated size of the file, from the manifest: for whole graphs, with the most config edges
// of a graph without cycles.
std::uint64_t estimated_bytes(const std::vector<GraphEntry>& entries, bool with_configs,
                              const GraphReduction& reduction);

// Reads the graphs from their shards and writes them one by one, so that the process never holds
// them all. Finishes the file with `key`. Throws IoError if the file cannot be written, and the
// exceptions of reading shards.
void write_graphs(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
                  bool with_configs, CacheFileWriter& writer, std::uint64_t key, ThreadPool& pool);

// The graphs, whose arrays stay in the file. Without configurations, opens the shards to read them.
// Throws DataError if the file has other graphs, and the exceptions of opening shards.
std::vector<OpenGraph> read_graphs(const std::shared_ptr<const CacheFile>& file,
                                   const std::vector<GraphEntry>& entries, bool with_configs);

}  // namespace tpudist
