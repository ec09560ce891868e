#include "data/loading/open_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "core/error.hpp"
#include "data/hdf5/narrow.hpp"

namespace tpudist {
namespace {

std::string where(const OpenGraph& g) {
  return g.entry.shard.string() + ":" + g.entry.group;
}

// A code beyond its node's dictionary would take a state of another node.
template <typename Code>
void check_codes(const std::vector<Code>& codes, const OpenGraph& g, std::int64_t first) {
  const auto nodes = static_cast<std::size_t>(g.width);
  std::vector<Code> highest(nodes);  // a loop of maxima is vectorised
  for (std::size_t i = 0; i < codes.size(); i += nodes)
    for (std::size_t j = 0; j < nodes; ++j) highest[j] = std::max(highest[j], codes[i + j]);

  for (std::size_t j = 0; j < nodes; ++j) {
    const std::int32_t states = g.states.offsets[j + 1] - g.states.offsets[j];
    if (highest[j] < states) continue;
    std::size_t row = 0;
    while (codes[row * nodes + j] < states) ++row;
    throw DataError(fmt::format(
        "{}/config_codes: configuration {} has code {} of node {}, which has {} states; "
        "the file is damaged, convert again",
        where(g), first + static_cast<std::int64_t>(row), codes[row * nodes + j],
        g.reader->read_graph().config_nodes[j], states));  // its number in the whole graph
  }
}

template <typename Code>
void copy_states(const Code* codes, const std::int32_t* offsets, std::size_t count,
                 std::int32_t* states) {
  for (std::size_t j = 0; j < count; ++j) states[j] = offsets[j] + codes[j];
}

template <typename T>
std::uint64_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace

OpenGraph OpenGraph::open(const GraphEntry& entry, const Collection& collection,
                          DuplicatesPolicy duplicates) {
  OpenGraph g;
  g.entry = entry;
  g.reader.emplace(entry);
  g.graph = g.reader->read_graph();
  g.times = g.reader->read_run_times();
  g.merged = merge_duplicates(g.times, duplicates, where(g));
  g.coded = g.reader->coded();
  if (g.coded) g.states = g.reader->read_states();
  g.width = g.coded                ? entry.config_nodes
            : collection.is_tile() ? kTileConfigFeatures
                                   : entry.config_nodes * kLayoutConfigFeatures;
  g.chunk_rows = g.reader->chunk_rows();
  return g;
}

ConfigChunk OpenGraph::read_chunk(std::int64_t number) const {
  const std::int64_t first = number * chunk_rows;
  const std::int64_t count = std::min(chunk_rows, entry.configs - first);
  ConfigChunk chunk;
  if (coded) {
    chunk.codes = reader->read_codes(first, count);
    std::visit([&](const auto& codes) { check_codes(codes, *this, first); }, chunk.codes);
  } else {
    chunk.type = reader->feature_type();
    chunk.features = reader->read_stored_features(first, count);
  }
  return chunk;
}

std::uint64_t OpenGraph::config_bytes() const {
  const std::size_t element = coded ? static_cast<std::size_t>(reader->code_bytes())
                                    : element_bytes(reader->feature_type());
  return static_cast<std::uint64_t>(entry.configs) * static_cast<std::uint64_t>(width) * element;
}

void OpenGraph::copy_config(const ConfigChunk& chunk, std::int64_t config, std::size_t k,
                            std::span<std::int32_t> states_out,
                            std::span<float> features_out) const {
  const auto row = static_cast<std::size_t>(config % chunk_rows);
  const auto values = static_cast<std::size_t>(width);
  if (coded) {
    const auto copy = [&](const auto& codes) {
      copy_states(codes.data() + row * values, states.offsets.data(), values,
                  states_out.data() + k * values);
    };
    std::visit(copy, chunk.codes);
  } else {
    const std::size_t bytes = values * element_bytes(chunk.type);
    widen(std::span(chunk.features).subspan(row * bytes, bytes), chunk.type,
          features_out.subspan(k * values, values));
  }
}

std::uint64_t OpenGraph::resident_bytes() const {
  std::uint64_t bytes =
      bytes_of(graph.node_features) + bytes_of(graph.opcodes) + bytes_of(graph.edge_index) +
      bytes_of(graph.config_nodes) + bytes_of(graph.node_splits) + bytes_of(times.runtime) +
      bytes_of(times.normalizer) + bytes_of(times.group) + bytes_of(states.features) +
      bytes_of(states.offsets) + bytes_of(merged.configs) + bytes_of(merged.targets);
  for (const ConfigChunk& chunk : chunks) bytes += chunk.bytes();
  return bytes;
}

}  // namespace tpudist
