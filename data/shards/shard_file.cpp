#include "data/shards/shard_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "data/hdf5/narrow.hpp"

namespace tpudist {
namespace {

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
