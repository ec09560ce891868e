#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/loading/code_cache.hpp"
#include "data/loading/duplicates.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {

// One graph of a Dataset: static part and run times in memory, configurations in memory (`chunks`)
// or read on demand (`reader`). Plain data; const functions are thread-safe.
struct OpenGraph {
  GraphEntry entry;
  std::optional<GraphReader> reader;  // as long as chunks may be read
  Graph graph;
  RunTimes times;
  ConfigStates states;
  MergedRows merged;  // empty: every configuration is a row
  bool coded = false;
  std::int64_t width = 0;  // number of codes or features per configuration
  std::int64_t chunk_rows = 1;
  std::vector<ConfigChunk> chunks;  // all of them, or none

  // Reads everything except the configurations. Throws DataError or IoError.
  static OpenGraph open(const GraphEntry& entry, const RowRules& rules);
  // Opens the shard to read chunks of a graph that has its other arrays. Throws DataError or
  // IoError.
  void open_reader();

  std::int64_t chunk_count() const { return (entry.configs + chunk_rows - 1) / chunk_rows; }

  // Reads one chunk and checks its codes. Needs the reader. Throws DataError or IoError.
  ConfigChunk read_chunk(std::int64_t number) const;

  // Type of the codes, or of the features of a graph without codes. Needs the reader.
  ElementType config_type() const;

  // Memory for all configurations. Needs the reader.
  std::uint64_t config_bytes() const;

  // Copies configuration `config`, a row of `chunk`, to position k of a slate: to states_out [K,
  // nc] if the graph is coded, else to features_out [K, width].
  void copy_config(const ConfigChunk& chunk, std::int64_t config, std::size_t k,
                   std::span<std::int32_t> states_out, std::span<float> features_out) const;

  std::uint64_t resident_bytes() const;
};

// Calls body(array) for each array of an OpenGraph, const or not, in the order of cache files,
// except chunks.
template <typename G, typename Body>
void for_each_array(G& g, Body&& body) {
  body(g.graph.node_features);
  body(g.graph.opcodes);
  body(g.graph.edge_index);
  body(g.graph.config_nodes);
  body(g.graph.node_splits);
  body(g.graph.config_edges);
  body(g.graph.segment);
  body(g.times.runtime);
  body(g.times.normalizer);
  body(g.times.group);
  body(g.states.features);
  body(g.states.offsets);
  body(g.merged.configs);
  body(g.merged.targets);
}

}  // namespace tpudist
