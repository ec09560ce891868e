#include "data/convert/graph_schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "data/hdf5/element_type.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kAny = -1;  // an axis of any length
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::string_view config_array(const Collection& collection) {
  return collection.is_tile() ? "config_feat" : "node_config_feat";
}

// Allowed element types. Features may be of any numeric type if float32 holds the values; reading
// checks the values.
enum class Elements { integers, features };

// Opens an array and checks its kind of number and its shape; `wanted` is e.g. "[n, 140]". If the
// last axis is the schema's width, `widths` ends the message.
NpzArray open_shaped(const NpzReader& npz, std::string_view name, Elements elements,
                     std::initializer_list<std::int64_t> shape, std::string_view wanted,
                     std::string_view widths = {}) {
  NpzArray array = npz.open(name);
  const NpyHeader& header = array.header();
  if (elements == Elements::integers && header.kind == 'f') {
    array.fail(fmt::format("has dtype '{}' but must be integer", header.descr));
  }
  const bool same =
      std::equal(shape.begin(), shape.end(), array.shape().begin(), array.shape().end(),
                 [](std::int64_t want, std::int64_t have) { return want == kAny || want == have; });
  if (!same) {
    array.fail(fmt::format("has shape [{}] but must have {}{}", fmt::join(array.shape(), ", "),
                           wanted, widths));
  }
  return array;
}

std::int64_t first_axis(const NpzArray& array, std::int64_t least, std::int64_t most,
                        std::string_view things) {
  const std::int64_t count = array.shape().empty() ? 0 : array.shape()[0];
  if (count < least) array.fail(fmt::format("has no {}", things));
  if (count > most) array.fail(fmt::format("has {} {}, more than {}", count, things, most));
  return count;
}

// Reads an integer array with values in low .. high. `what` follows the value in the message.
template <typename T>
std::vector<T> read_ranged(NpzArray& array, std::int64_t low, std::int64_t high,
                           std::string_view what) {
  std::vector<T> values;
  std::vector<std::int64_t> piece(std::min<std::uint64_t>(array.remaining(), 1 << 15));
  while (array.remaining() > 0) {
    const auto part =
        std::span(piece).first(std::min<std::uint64_t>(array.remaining(), piece.size()));
    array.read(part);
    for (const std::int64_t value : part) {
      if (value < low || value > high) {
        throw DataError(fmt::format("{} = {} {}", array.where(values.size()), value, what));
      }
      values.push_back(static_cast<T>(value));
    }
  }
  return values;
}

std::vector<std::int32_t> read_config_nodes(const NpzReader& npz, const GraphSizes& sizes) {
  NpzArray array = npz.open("node_config_ids");
  auto ids = read_ranged<std::int32_t>(
      array, 0, sizes.nodes - 1, fmt::format("is not a node (the graph has {})", sizes.nodes));
  std::vector<std::int64_t> seen(static_cast<std::size_t>(sizes.nodes), -1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int64_t& first = seen[ids[i]];
    if (first >= 0) {
      throw DataError(
          fmt::format("{} = {} repeats node_config_ids[{}]", array.where(i), ids[i], first));
    }
    first = static_cast<std::int64_t>(i);
  }
  return ids;
}

std::vector<std::int64_t> read_normalizers(const NpzReader& npz) {
  NpzArray normalizers = npz.open("config_runtime_normalizers");
  return read_ranged<std::int64_t>(normalizers, 1, kMost, "is not positive");
}

}  // namespace

GraphSizes read_graph_sizes(const NpzReader& npz, const Collection& collection,
                            bool needs_run_times) {
  const FeatureSchema& schema = collection.schema;
  const std::string_view widths =
      collection.is_tpugraphs() ? "" : ", the width of its collection's graphs";
  GraphSizes sizes;
  sizes.nodes =
      first_axis(open_shaped(npz, "node_feat", Elements::features, {kAny, schema.node_features},
                             fmt::format("[n, {}]", schema.node_features), widths),
                 1, kMaxNodes, "nodes");
  if (schema.opcodes > 0) {
    open_shaped(npz, "node_opcode", Elements::integers, {sizes.nodes},
                fmt::format("[{}]", sizes.nodes));
  } else if (npz.contains("node_opcode")) {
    npz.open("node_opcode")
        .fail(
            fmt::format("is there, but {} has no opcodes: its other graphs or its schema.yaml have "
                        "none; all graphs must have them, or none",
                        collection.name));
  }
  sizes.edges = first_axis(open_shaped(npz, "edge_index", Elements::integers, {kAny, 2}, "[m, 2]"),
                           0, kMaxEdges, "edges");
  if (npz.contains("node_splits")) {
    const NpzArray splits =
        open_shaped(npz, "node_splits", Elements::integers, {1, kAny}, "[1, s]");
    if (splits.shape()[1] > sizes.nodes + 1)
      splits.fail(fmt::format("has {} splits of {} nodes", splits.shape()[1], sizes.nodes));
  }
  const auto is_wanted = [&](std::string_view array) {
    return needs_run_times || npz.contains(array);
  };
  sizes.configs =
      first_axis(open_config_features(npz, collection), 1, kMaxConfigs, "configurations");
  const std::int64_t c = sizes.configs;
  if (is_wanted("config_runtime")) {
    const NpzArray times = open_shaped(npz, "config_runtime", Elements::integers, {kAny}, "[c]");
    if (times.shape()[0] != c)
      times.fail(fmt::format("has {} run times, but {} has {} configurations", times.shape()[0],
                             config_array(collection), c));
  }
  if (collection.is_tile()) {
    sizes.config_values = schema.config_features;
    if (is_wanted("config_runtime_normalizers")) {
      open_shaped(npz, "config_runtime_normalizers", Elements::integers, {c},
                  fmt::format("[{}]", c));
    }
    open_shaped(npz, "config_feat", Elements::features, {c, schema.config_features},
                fmt::format("[{}, {}]", c, schema.config_features), widths);
  } else {
    sizes.config_nodes =
        first_axis(open_shaped(npz, "node_config_ids", Elements::integers, {kAny}, "[nc]"), 1,
                   sizes.nodes, "configurable nodes");
    sizes.config_values = sizes.config_nodes * schema.config_features;
    open_shaped(npz, "node_config_feat", Elements::features,
                {c, sizes.config_nodes, schema.config_features},
                fmt::format("[{}, {}, {}]", c, sizes.config_nodes, schema.config_features), widths);
  }
  return sizes;
}

Graph read_graph(const NpzReader& npz, const Collection& collection, const GraphSizes& sizes) {
  Graph graph;
  graph.name = npz.path().stem().string();
  graph.nodes = sizes.nodes;
  graph.edges = sizes.edges;

  NpzArray features = npz.open("node_feat");
  graph.node_features = features.read_floats();
  const auto bad =
      std::ranges::find_if(graph.node_features, [](float v) { return !std::isfinite(v); });
  if (bad != graph.node_features.end()) {
    throw DataError(fmt::format(
        "{} is {}", features.where(static_cast<std::uint64_t>(bad - graph.node_features.begin())),
        *bad));
  }

  const int opcodes = collection.schema.opcodes;
  if (opcodes > 0) {
    NpzArray array = npz.open("node_opcode");
    graph.opcodes = read_ranged<std::uint8_t>(
        array, 0, opcodes - 1,
        fmt::format("is not an opcode (0 to {}{})", opcodes - 1,
                    collection.is_tpugraphs() ? "" : "; `opcodes` in schema.yaml says how many"));
  } else {
    graph.opcodes = std::vector<std::uint8_t>(static_cast<std::size_t>(sizes.nodes));
  }
  NpzArray edges = npz.open("edge_index");
  graph.edge_index = read_ranged<std::int32_t>(
      edges, 0, sizes.nodes - 1, fmt::format("is not a node (the graph has {})", sizes.nodes));
  if (!collection.is_tile()) graph.config_nodes = read_config_nodes(npz, sizes);
  if (npz.contains("node_splits")) {
    NpzArray splits = npz.open("node_splits");
    graph.node_splits = read_ranged<std::int64_t>(
        splits, 0, sizes.nodes, fmt::format("is not in 0 to {}, the number of nodes", sizes.nodes));
  }
  return graph;
}

RunTimes read_run_times(const NpzReader& npz, const Collection& collection, std::string_view split,
                        const GraphSizes& sizes) {
  RunTimes times;
  NpzArray runtime = npz.open("config_runtime");
  const bool hidden = split == "test";
  times.runtime = read_ranged<std::int64_t>(
      runtime, hidden ? 0 : 1, kMost,
      hidden ? "is negative" : "is not a run time (positive; only test splits have 0)");
  if (collection.is_tile()) times.normalizer = read_normalizers(npz);
  if (times.configs() != sizes.configs) runtime.fail("changed while it was read");
  return times;
}

std::optional<RunTimes> read_optional_run_times(const NpzReader& npz, const Collection& collection,
                                                const GraphSizes& sizes) {
  if (!npz.contains("config_runtime")) return std::nullopt;
  RunTimes times;
  NpzArray runtime = npz.open("config_runtime");
  times.runtime = read_ranged<std::int64_t>(runtime, 0, kMost, "is negative");
  if (times.configs() != sizes.configs) runtime.fail("changed while it was read");
  const auto zero = std::ranges::find(times.runtime, 0);
  if (zero != times.runtime.end() && std::ranges::count(times.runtime, 0) < times.configs()) {
    throw DataError(fmt::format(
        "{} = 0 is not a run time, but others are; set all to 0, or leave the array out",
        runtime.where(static_cast<std::uint64_t>(zero - times.runtime.begin()))));
  }
  if (zero != times.runtime.end()) return std::nullopt;
  if (collection.is_tile() && npz.contains("config_runtime_normalizers"))
    times.normalizer = read_normalizers(npz);
  return times;
}

NpzArray open_config_features(const NpzReader& npz, const Collection& collection) {
  return npz.open(config_array(collection));
}

FeatureStream& ConfigPasses::start() {
  if (!stream_ || !stream_->restart()) stream_.emplace(open_config_features(npz_, collection_));
  return *stream_;
}

ElementType ConfigPasses::type_of_rest(const FeatureStream::Block* block, ElementType least) {
  ElementType type = least;
  for (; block; block = stream_->next()) {
    const ElementType own = narrowest_type(block->values);
    if (own == ElementType::f32) stream_->check_finite(*block);
    type = std::max(type, own);  // ElementType is in rising order
  }
  return type;
}

}  // namespace tpudist
