#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/loading/duplicates.hpp"
#include "data/loading/graph_reduction.hpp"
#include "data/loading/node_cache.hpp"
#include "data/loading/slate_order.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {

// Where configurations lie: inflated in memory in their stored width, or in shards, read chunk by
// chunk through a bounded cache that the threads share. `automatic` uses memory if the
// configurations of all graphs fit into the budget.
enum class CacheMode { automatic, memory, stream };

// Graphs of a second split, which follow those of the first.
struct SecondSplit {
  std::string name;
  std::vector<std::string> include, exclude;  // as in DatasetOptions
};

struct DatasetOptions {
  std::filesystem::path shards;  // shard root
  Collection collection;
  std::string split = {};                 // "train", "valid" or "test"
  std::vector<std::string> include = {};  // glob patterns over graph names; empty = all
  std::vector<std::string> exclude = {};
  DuplicatesPolicy duplicates = DuplicatesPolicy::keep;
  std::int64_t max_configs = 0;   // rows of a graph (RowRules); 0 = all
  double least_entropy = 0;       // RowRules; graphs without a remaining row are left out
  GraphReduction reduction = {};  // layouts only
  CacheMode cache = CacheMode::automatic;
  // Budget of `automatic` and limit of the cache; only configurations count.
  std::uint64_t cache_bytes = 2ull << 30;
  std::optional<SecondSplit> second = {};  // if given, it must have graphs
  NodeCacheOptions node_cache = {};        // whether processes of the node share one copy

  // "train", or "train+valid" with a second split.
  std::string splits() const;
  RowRules rows() const { return {duplicates, max_configs, least_entropy}; }
};

// K configurations of one graph, which a ranking loss compares. Owns its data.
struct Slate {
  int graph = 0;  // index in the dataset
  // [K] configuration numbers in the shard; for duplicates the first one (except with `keep`).
  std::vector<std::int64_t> configs;
  // [K] the ranked values: ns (layout), runtime / normalizer (tile), after the duplicates policy.
  std::vector<double> targets;
  // Layout: [K, nc], the row in the graph's state table for each configurable node. Tile: [K], the
  // state that all nodes of a configuration share.
  std::vector<std::int32_t> states;
  // This slate's own state table [S, F] if the graph has none (tile: S = K; uncoded layout: S = K *
  // nc, a row for each entry of `states`). Otherwise empty: use Dataset::states.
  std::vector<float> local_states;
};

// Configurations first .. first + count - 1 of a slate.
Slate part_of_slate(const Slate& slate, std::int64_t first, std::int64_t count);

// The graphs of one or two splits of a collection, filtered, each split sorted by name, with random
// access to slates. The static parts and run times are in memory, the configurations as the cache
// mode says. Immutable after `open`; all methods are thread-safe.
class Dataset {
 public:
  // Reads several graphs at a time, and reduces them if `options` say so. Throws DataError, and
  // ConfigError, with the filters, if no graph is left.
  static Dataset open(const DatasetOptions& options, ThreadPool& pool);
  // A data set of graphs that are in memory, with configurations, and not in shards. Uses only
  // collection, split and reduction of `options`. Throws std::invalid_argument if chunks are
  // missing.
  static Dataset of_graphs(const DatasetOptions& options, std::vector<OpenGraph> graphs);
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  // A data set of one graph, already reduced, with the configurations of a slate with a state table of
  // its own. They are distinct, in memory and without run times. For layouts.
  static Dataset of_slate(const DatasetOptions& options, GraphEntry entry, Graph graph,
                          const Slate& slate);
  ~Dataset();

  const DatasetOptions& options() const;
  int size() const;                         // number of graphs
  const Graph& graph(int i) const;          // as opened, before nodes are drawn
  std::int64_t seen_nodes(int i) const;     // number of nodes that a slate sees
  const GraphEntry& entry(int i) const;     // of the whole graph
  const RunTimes& run_times(int i) const;   // every measured row
  const ConfigStates& states(int i) const;  // empty for tile and uncoded graphs
  bool coded(int i) const;

  // Number of rows to draw from: all configurations, or those that RowRules choose.
  std::int64_t rows(int i) const;
  std::vector<std::int64_t> rows_per_graph() const;
  std::int64_t config_of(int i, std::int64_t row) const;  // configuration number of a row
  double target(int i, std::int64_t row) const;

  // The slate of these rows (each < rows(i), else std::out_of_range), in this order. Streaming
  // throws DataError or IoError.
  Slate slate(int i, std::span<const std::int64_t> rows) const;

  // Names of the graphs that were left out because least_entropy leaves them no row.
  const std::vector<std::string>& left_out() const;

  // XXH3 over everything that determines row r of graph i: names, source hashes, graphs that pass
  // the filters, row rules. The reduction does not change rows.
  std::uint64_t selection_hash() const;

  bool in_memory() const;                // result of the cache mode
  std::uint64_t resident_bytes() const;  // held by this object, caches included
  std::uint64_t shared_bytes() const;    // shared by all processes of the node; else 0

 private:
  struct Impl;
  explicit Dataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Reads a graph without its configurations, and reduces it if the options say so. Throws DataError
// or IoError.
OpenGraph open_graph(const GraphEntry& entry, const DatasetOptions& options);

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

// The order of training on this data set: SlateOrder of its rows and selection, with the rows by
// run time if the mix needs them.
SlateOrder order_of(const OrderOptions& options, const Dataset& data);

// XXH3 over the segments of all graphs; nothing if graphs are not cut.
std::optional<std::uint64_t> segment_hash(const Dataset& data);

}  // namespace tpudist
