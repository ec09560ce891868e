#include "data/loading/graph_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <variant>

#include "core/error.hpp"
#include "data/loading/dataset.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kArrays = 14;

// One graph in the directory of a cache file.
struct GraphRecord {
  std::int64_t nodes = 0, edges = 0;  // after the reduction
  std::int64_t width = 0;
  std::int64_t coded = 0;
  std::int64_t config_type = 0;             // ElementType of codes or features
  std::array<StoredArray, kArrays> arrays;  // in the order of for_each_array
  StoredArray configs;
};
static_assert(std::is_trivially_copyable_v<GraphRecord>);

template <typename T>
std::span<const std::byte> bytes_of(const Array<T>& values) {
  return std::as_bytes(std::span(values));
}

std::span<const std::byte> bytes_of(const ConfigChunk& chunk, bool coded) {
  if (!coded) return bytes_of(chunk.features);
  return std::visit([](const auto& codes) { return bytes_of(codes); }, chunk.codes);
}

GraphRecord write_arrays(const OpenGraph& g, CacheFileWriter& writer) {
  GraphRecord record;
  record.nodes = g.graph.nodes;
  record.edges = g.graph.edges;
  record.width = g.width;
  record.coded = g.coded;
  std::size_t i = 0;
  for_each_array(g, [&](const auto& values) {
    StoredArray& place = record.arrays[i++];
    place = {writer.reserve(values.bytes()), values.size()};
    writer.write(place.offset, bytes_of(values));
  });
  return record;
}

// Records type and number of the configurations' elements in the file.
void describe_configs(const OpenGraph& g, GraphRecord& record) {
  const ElementType type = g.config_type();
  record.config_type = static_cast<std::int64_t>(type);
  record.configs.count = g.config_bytes() / element_bytes(type);
}

ConfigChunk configs_in(const CacheFile& file, const GraphRecord& record) {
  ConfigChunk all;
  const auto type = static_cast<ElementType>(record.config_type);
  if (!record.coded) {
    all.type = type;
    StoredArray bytes = record.configs;
    bytes.count *= element_bytes(type);
    all.features = file.array<std::byte>(bytes);
  } else if (type == ElementType::u16) {
    all.codes = file.array<std::uint16_t>(record.configs);
  } else {
    all.codes = file.array<std::uint8_t>(record.configs);
  }
  return all;
}

}  // namespace

std::uint64_t estimated_bytes(const std::vector<GraphEntry>& entries, bool with_configs,
                              const GraphReduction& reduction) {
  std::uint64_t bytes = 1 << 16;
  for (const GraphEntry& entry : entries) {
    const auto nodes = static_cast<std::uint64_t>(entry.nodes);
    const auto configs = static_cast<std::uint64_t>(entry.configs);
    bytes += nodes * (static_cast<std::uint64_t>(entry.schema.node_features) * 4 + 5) +
             static_cast<std::uint64_t>(entry.edges) * 8;
    bytes += configs * (8 + 4 + 16) + sizeof(GraphRecord);  // run times, groups, merged rows
    if (with_configs) bytes += entry.config_bytes();
    if (reduction.config_edges) {
      const std::int64_t ends = std::min(entry.config_nodes, kMostConfigEdges);
      bytes += static_cast<std::uint64_t>(8 * std::min(ends * (ends - 1) / 2, kMostConfigEdges));
    }
    if (reduction.segments != SegmentCut::none) bytes += 4 * nodes;
  }
  return bytes;
}

void write_graphs(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
                  bool with_configs, CacheFileWriter& writer, std::uint64_t key, ThreadPool& pool) {
  check_shard_hashes(entries, pool);
  std::vector<GraphRecord> records(entries.size());
  std::vector<OpenGraph> graphs(entries.size());
  pool.parallel_for(std::ssize(entries), [&](std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    OpenGraph g = open_graph(entries[i], options);
    records[i] = write_arrays(g, writer);
    if (!with_configs) return;
    describe_configs(g, records[i]);
    records[i].configs.offset = writer.reserve(g.config_bytes());
    // Keeps what reading chunks needs.
    g.graph = {};
    g.times = {};
    g.merged = {};
    graphs[i] = std::move(g);
  });

  std::vector<std::pair<std::size_t, std::int64_t>> chunks;  // (graph, number)
  for (std::size_t i = 0; with_configs && i < graphs.size(); ++i)
    for (std::int64_t c = 0; c < graphs[i].chunk_count(); ++c) chunks.emplace_back(i, c);
  pool.parallel_for(std::ssize(chunks), [&](std::int64_t at) {
    const auto [i, number] = chunks[static_cast<std::size_t>(at)];
    const OpenGraph& g = graphs[i];
    const ConfigChunk chunk = g.read_chunk(number);
    const std::uint64_t first = static_cast<std::uint64_t>(number * g.chunk_rows * g.width) *
                                element_bytes(static_cast<ElementType>(records[i].config_type));
    writer.write(records[i].configs.offset + first, bytes_of(chunk, g.coded));
  });
  writer.finish(key, std::as_bytes(std::span(records)), pool);
}

std::vector<OpenGraph> read_graphs(const std::shared_ptr<const CacheFile>& file,
                                   const std::vector<GraphEntry>& entries, bool with_configs) {
  const std::span<const std::byte> directory = file->directory();
  if (directory.size() != entries.size() * sizeof(GraphRecord))
    throw DataError("the directory of a cache file is of other graphs");
  std::vector<OpenGraph> graphs(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    GraphRecord record;
    std::memcpy(&record, directory.data() + i * sizeof record, sizeof record);
    OpenGraph& g = graphs[i];
    g.entry = entries[i];
    g.graph.name = g.entry.name;
    g.graph.nodes = record.nodes;
    g.graph.edges = record.edges;
    g.width = record.width;
    g.coded = record.coded != 0;
    std::size_t a = 0;
    for_each_array(
        g, [&]<typename T>(Array<T>& values) { values = file->array<T>(record.arrays[a++]); });
    if (with_configs) {
      g.chunk_rows = g.entry.configs;
      g.chunks.push_back(configs_in(*file, record));
    } else {
      g.open_reader();
    }
  }
  return graphs;
}

}  // namespace tpudist
