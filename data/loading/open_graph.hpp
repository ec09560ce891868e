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

// One graph of a Dataset: the static part and run times in memory, and its configurations either in
// memory (`chunks`) or read when wanted (`reader`). Plain data; const functions are thread-safe.
struct OpenGraph {
  GraphEntry entry;
  std::optional<GraphReader> reader;  // while chunks may be read
  Graph graph;
  RunTimes times;
  ConfigStates states;
  MergedRows merged;  // empty: every configuration is a row
  bool coded = false;
  std::int64_t width = 0;  // codes or features of one configuration
  std::int64_t chunk_rows = 1;
  std::vector<ConfigChunk> chunks;  // all of them, or none

  // Reads everything but the configurations. Throws DataError or IoError.
  static OpenGraph open(const GraphEntry& entry, const Collection& collection,
                        DuplicatesPolicy duplicates);
  // Opens the shard to read chunks of a graph whose other arrays are there already. Throws DataError
  // or IoError.
  void open_reader();

  std::int64_t chunk_count() const { return (entry.configs + chunk_rows - 1) / chunk_rows; }

  // Reads one chunk and checks its codes. Needs the reader. Throws DataError or IoError.
  ConfigChunk read_chunk(std::int64_t number) const;

  // Type of the codes, or of the features of a graph without codes. Needs the reader.
  ElementType config_type() const;

  // What all configurations would take in memory. Needs the reader.
  std::uint64_t config_bytes() const;

  // Writes configuration `config`, a row of `chunk`, to slot k of a slate: states [K, nc] where the
  // graph is coded, else features [K, width].
  void copy_config(const ConfigChunk& chunk, std::int64_t config, std::size_t k,
                   std::span<std::int32_t> states_out, std::span<float> features_out) const;

  std::uint64_t resident_bytes() const;
};

}  // namespace tpudist
