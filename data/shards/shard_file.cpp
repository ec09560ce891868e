#include "data/shards/shard_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "data/hdf5/element_type.hpp"

namespace tpudist {
namespace {

// Bytes that a thread deflates between two synchronisations.
constexpr std::size_t kBytesPerThread = 256 << 10;

void summarize_codes(const Hdf5Id& group, std::string_view where, GraphSummary& graph) {
  const Hdf5Dataset codes = Hdf5Dataset::open(group, "config_codes", where);
  const Hdf5Dataset states = Hdf5Dataset::open(group, "config_states", where);
  check_array(states, states.type(), std::vector<std::int64_t>{-1, graph.schema.config_features});
  const auto offsets =
      read_array<std::int32_t>(group, "config_state_offset", {graph.config_nodes + 1}, where);
  graph.coded = true;
  graph.config_type = element_name(codes.type());
  graph.states = states.rows();
  for (std::size_t j = 0; j + 1 < offsets.size(); ++j) {
    graph.max_states_per_node = std::max(graph.max_states_per_node,
                                         std::int64_t{offsets[j + 1]} - std::int64_t{offsets[j]});
  }
  graph.memory_bytes = static_cast<std::uint64_t>(graph.configs) * codes.row_bytes() +
                       static_cast<std::uint64_t>(graph.states * graph.schema.config_features) * 4;
  graph.stored_bytes = codes.stored_bytes() + states.stored_bytes();
}

GraphSummary summarize_graph(const Hdf5Id& file, const FeatureSchema& schema, std::string name,
                             std::string_view path) {
  const std::string where = fmt::format("{}:{}", path, name);
  const Hdf5Id group = open_group(file, name, path);
  const auto number = [&](const char* attribute) {
    return read_integer_attribute(group, attribute, where);
  };
  GraphSummary graph;
  graph.schema = schema;
  graph.group = std::move(name);
  graph.name = read_text_attribute(group, "name", where);
  graph.source.path = read_text_attribute(group, "source", where);
  graph.source.bytes = static_cast<std::uint64_t>(number("source_size"));
  graph.source.hash = read_hash_attribute(group, "source_xxh3", where);
  graph.nodes = number("nodes");
  graph.edges = number("edges");
  graph.configs = number("configs");
  graph.config_nodes = number("config_nodes");
  require_possible(graph, where);
  const auto groups = read_array<std::int32_t>(group, "config_group", {graph.configs}, where);
  for (const std::int32_t g : groups) {
    graph.distinct_configs = std::max<std::int64_t>(graph.distinct_configs, g + std::int64_t{1});
  }
  const std::int64_t vectors = graph.configs * (schema.tile ? 1 : graph.config_nodes);
  graph.float_bytes = static_cast<std::uint64_t>(vectors * schema.config_features) * sizeof(float);
  if (has_link(group, "config_codes")) {
    summarize_codes(group, where, graph);
    require_possible(graph, where);
  } else {
    const Hdf5Dataset features = Hdf5Dataset::open(group, "config_feat", where);
    graph.config_type = element_name(features.type());
    graph.memory_bytes = static_cast<std::uint64_t>(graph.configs) * features.row_bytes();
    graph.stored_bytes = features.stored_bytes();
  }
  return graph;
}

// TpuGraphs' schema, unless the shard has another.
FeatureSchema read_schema(const Hdf5Id& file, std::string_view collection, std::string_view where) {
  FeatureSchema schema = Collection{std::string(collection)}.schema;
  if (!has_attribute(file, "node_features", where)) return schema;
  schema_fields(schema, [&]<typename T>(const char* name, T& value) {
    bool sound = true;
    if constexpr (std::is_same_v<T, ColumnRange>) {
      sound = parse_columns(read_text_attribute(file, name, where), kMostNodeFeatures, value);
    } else {
      const std::int64_t number = read_integer_attribute(file, name, where);
      value = static_cast<int>(std::clamp<std::int64_t>(number, -1, 1 << 20));
    }
    if (!sound) throw DataError(fmt::format("{}: {} is no range of columns", where, name));
  });
  if (const std::string fault = fault_of(schema); !fault.empty())
    throw DataError(fmt::format("{}: {}; convert again", where, fault));
  return schema;
}

}  // namespace

ShardWriter::ShardWriter(const std::filesystem::path& path, const Collection& collection,
                         std::string_view split, ThreadPool& pool)
    : where_(path.string()), pool_(pool), schema_(collection.schema), file_(create_hdf5(path)) {
  write_attribute(file_, "format", kShardFormat);
  write_attribute(file_, "version", kShardVersion);
  write_attribute(file_, "collection", collection.name);
  write_attribute(file_, "split", split);
  write_attribute(file_, "created_by", "tpudist " + std::string(version()));
  if (collection.schema != Collection{collection.name}.schema) {
    schema_fields(schema_, [&]<typename T>(const char* name, const T& value) {
      if constexpr (std::is_same_v<T, ColumnRange>)
        write_attribute(file_, name, to_text(value));
      else
        write_attribute(file_, name, std::int64_t{value});
    });
  }
  create_group(file_, "/graphs", where_);
}

void ShardWriter::begin(const Graph& graph, std::int64_t configs, const SourceFile& source) {
  group_ = create_group(file_, group_name(), where_);
  write_attribute(group_, "name", graph.name);
  write_attribute(group_, "source", source.path);
  write_attribute(group_, "source_size", static_cast<std::int64_t>(source.bytes));
  write_attribute(group_, "source_xxh3", to_hex(source.hash));
  write_attribute(group_, "nodes", graph.nodes);
  write_attribute(group_, "edges", graph.edges);
  write_attribute(group_, "configs", configs);
  const auto config_nodes = std::ssize(graph.config_nodes);
  write_attribute(group_, "config_nodes", config_nodes);

  write<float>("node_feat", {graph.nodes, schema_.node_features}, graph.node_features);
  if (schema_.opcodes > 0) write<std::uint8_t>("node_opcode", {graph.nodes}, graph.opcodes);
  write<std::int32_t>("edge_index", {graph.edges, 2}, graph.edge_index);
  if (config_nodes > 0) write<std::int32_t>("config_nodes", {config_nodes}, graph.config_nodes);
  if (!graph.node_splits.empty()) {
    const auto splits = std::ssize(graph.node_splits);
    write<std::int64_t>("node_splits", {1, splits}, graph.node_splits);
  }
}

Hdf5Dataset ShardWriter::create(const std::string& name, ElementType type,
                                std::vector<std::int64_t> shape, std::size_t chunk_bytes) {
  remove(name);
  return Hdf5Dataset::create(group_, name, type, std::move(shape), where_ + ":" + group_name(),
                             chunk_bytes);
}

void ShardWriter::write(const RunTimes& times) {
  const std::int64_t c = times.configs();
  write<std::int64_t>("runtime", {c}, times.runtime);
  if (!times.normalizer.empty()) {
    write<std::int64_t>("runtime_normalizer", {c}, times.normalizer);
  }
  write<std::int32_t>("config_group", {c}, times.group);
}

void ShardWriter::remove(const std::string& name) {
  if (has_link(group_, name)) remove_link(group_, name, where_);
}

void ShardWriter::end() {
  group_.close();
  ++graphs_;
}

void ShardWriter::drop() {
  if (group_.get() < 0) return;
  group_.close();
  remove_link(file_, group_name(), where_);
}

void ShardWriter::close() {
  write_attribute(file_, "complete", std::int64_t{1});
  const Hdf5Lock lock;  // no other call may overwrite the reason
  check_hdf5(file_.close() ? 0 : -1, "close", where_);
}

ChunkAppender::ChunkAppender(Hdf5Dataset& dataset, ThreadPool& pool)
    : dataset_(dataset), pool_(pool) {
  const std::size_t bytes = static_cast<std::size_t>(dataset.chunk_rows()) * dataset.row_bytes();
  const std::size_t chunks =
      std::max<std::size_t>(kBytesPerThread / std::max<std::size_t>(bytes, 1), 1);
  chunks_.resize(chunks * static_cast<std::size_t>(pool.threads()));
}

std::span<std::byte> ChunkAppender::room(std::int64_t most) {
  if (most < 1) throw std::out_of_range("ChunkAppender::room");
  const std::int64_t chunk = first_chunk_ + static_cast<std::int64_t>(used_chunks_);
  const std::int64_t free = dataset_.rows_of_chunk(chunk) - rows_in_chunk_;
  if (chunk >= dataset_.chunks() || free < 1) throw std::out_of_range("ChunkAppender::room");
  const std::size_t bytes = dataset_.row_bytes();
  auto& data = chunks_[used_chunks_];
  data.resize(static_cast<std::size_t>(dataset_.rows_of_chunk(chunk)) * bytes);
  return std::span(data).subspan(static_cast<std::size_t>(rows_in_chunk_) * bytes,
                                 static_cast<std::size_t>(std::min(most, free)) * bytes);
}

void ChunkAppender::advance(std::int64_t rows) {
  rows_in_chunk_ += rows;
  const std::int64_t chunk = first_chunk_ + static_cast<std::int64_t>(used_chunks_);
  if (rows_in_chunk_ < dataset_.rows_of_chunk(chunk)) return;
  rows_in_chunk_ = 0;
  if (++used_chunks_ == chunks_.size()) flush();
}

void ChunkAppender::flush() {
  const std::vector<std::span<const std::byte>> chunks(
      chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(used_chunks_));
  dataset_.write_chunks(first_chunk_, chunks, pool_, /*prove=*/true);
  first_chunk_ += static_cast<std::int64_t>(used_chunks_);
  used_chunks_ = 0;
}

void ChunkAppender::finish() {
  flush();
  if (first_chunk_ != dataset_.chunks() || rows_in_chunk_ != 0) {
    throw std::logic_error(dataset_.where() + ": rows are missing");
  }
}

Hdf5Id open_shard(const std::filesystem::path& path) {
  Hdf5Id file = open_hdf5(path);
  const std::string where = path.string();
  if (read_text_attribute(file, "format", where) != kShardFormat) {
    throw DataError(where + ": is HDF5 but not a shard of tpudist");
  }
  const std::int64_t version = read_integer_attribute(file, "version", where);
  if (version != kShardVersion) {
    throw DataError(
        fmt::format("{}: has shard version {}, but this program reads {}; convert again", where,
                    version, kShardVersion));
  }
  if (read_integer_attribute(file, "complete", where) != 1) {
    throw DataError(where + ": is not complete; convert again");
  }
  return file;
}

ShardSummary summarize_shard(const std::filesystem::path& path) {
  const std::string where = path.string();
  const Hdf5Id file = open_shard(path);
  ShardSummary shard;
  shard.collection = read_text_attribute(file, "collection", where);
  shard.schema = read_schema(file, shard.collection, where);
  shard.split = read_text_attribute(file, "split", where);
  for (std::int64_t i = 0; has_link(file, graph_group(i)); ++i) {
    shard.graphs.push_back(summarize_graph(file, shard.schema, graph_group(i), where));
  }
  return shard;
}

bool is_graph_name(std::string_view name) {
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  return is_utf8(name) && std::ranges::none_of(name, is_control);
}

void require_possible(const GraphSummary& graph, std::string_view where) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const auto require = [&](std::string_view name, std::int64_t value, std::int64_t most) {
    if (value >= 0 && value <= most) return;
    throw DataError(fmt::format("{}: {} is {}, which is not from 0 to {}; convert again", where,
                                name, value, most));
  };
  if (!is_graph_name(graph.name))
    throw DataError(fmt::format("{}: its name has control characters; convert again", where));
  require("nodes", graph.nodes, kMaxNodes);
  require("edges", graph.edges, kMost);
  require("configs", graph.configs, kMost);
  require("config_nodes", graph.config_nodes, kMaxNodes);
  require("distinct_configs", graph.distinct_configs, kMost);
  require("states", graph.states, kMost);
  require("max_states_per_node", graph.max_states_per_node, kMost);
}

void require_finite(std::span<const float> values, std::string_view where, std::int64_t first) {
  const auto bad = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  if (bad == values.end()) return;
  throw DataError(fmt::format("{}: element {} is {}; convert again", where,
                              first + (bad - values.begin()), *bad));
}

void require_finite(const Hdf5Dataset& dataset, std::int64_t first,
                    std::span<const std::byte> rows) {
  if (dataset.type() != ElementType::f32) return;
  require_finite({reinterpret_cast<const float*>(rows.data()), rows.size() / sizeof(float)},
                 dataset.where(),
                 first * static_cast<std::int64_t>(dataset.row_bytes() / sizeof(float)));
}

void check_feature_type(const Hdf5Dataset& dataset) {
  const ElementType type = dataset.type();
  if (type != ElementType::i8 && type != ElementType::i16 && type != ElementType::i32 &&
      type != ElementType::f32) {
    throw DataError(dataset.where() + ": has an element type that features never have");
  }
}

std::vector<float> read_widened(const Hdf5Dataset& dataset, std::int64_t first,
                                std::int64_t count) {
  check_feature_type(dataset);
  const ElementType type = dataset.type();
  std::vector<std::byte> stored(static_cast<std::size_t>(count) * dataset.row_bytes());
  dataset.read_rows(first, count, stored);
  require_finite(dataset, first, stored);
  std::vector<float> values(stored.size() / element_bytes(type));
  widen(stored, type, values);
  return values;
}

}  // namespace tpudist
