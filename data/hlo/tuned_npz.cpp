#include "data/hlo/tuned_npz.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/hlo/layout_space.hpp"
#include "data/hlo/proto_reader.hpp"
#include "data/npz/npz_writer.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist {
namespace {

using protozero::pbf_reader;

constexpr NpzOptions kThrownAway{.deflate_level = 1, .durable = false};

void add_graph(NpzWriter& writer, const HloGraph& graph) {
  writer.add("node_feat", {graph.nodes(), kNodeFeatures}, graph.node_features);
  writer.add("node_opcode", {graph.nodes()}, graph.opcodes);
  writer.add("edge_index", {static_cast<std::int64_t>(graph.edges.size() / 2), 2}, graph.edges);
}

void add_splits(NpzWriter& writer, const HloGraph& graph) {
  writer.add("node_splits", {1, std::ssize(graph.node_splits)}, graph.node_splits);
}

}  // namespace

std::vector<std::string> unknown_parts(const HloGraph& graph) {
  std::vector<std::string> parts;
  if (!graph.unknown_opcodes.empty())
    parts.push_back(fmt::format("the features do not know the opcodes {}; they count as number 0",
                                fmt::join(graph.unknown_opcodes, ", ")));
  if (!graph.unknown_element_types.empty())
    parts.push_back(fmt::format("the features do not know the element types (xla.PrimitiveType) {}",
                                fmt::join(graph.unknown_element_types, ", ")));
  return parts;
}

void write_layout_config(std::span<const char> config, std::span<float> to,
                         std::string_view where) {
  std::ranges::fill(to, -1.0f);
  const std::size_t nodes = to.size() / kLayoutConfigFeatures;
  std::size_t node = 0;
  checked(where, [&] {
    pbf_reader field{config.data(), config.size()};
    while (field.next()) {
      const auto of_node = message_of(field, 1);
      if (!of_node) continue;
      int tensor = 0;
      pbf_reader part{*of_node};
      while (part.next()) {
        const auto of_tensor = message_of(part, 1);
        if (!of_tensor) continue;
        if (tensor == kTensors || node == nodes) {
          throw DataError(
              fmt::format("{}: the layouts of node {} are not those of one of {} nodes "
                          "with at most three tensors",
                          where, node, nodes));
        }
        std::vector<std::int64_t> dimensions;
        pbf_reader layout{*of_tensor};
        while (layout.next())
          layout.tag() == 1 ? append_integers(layout, dimensions) : layout.skip();
        const std::size_t begin =
            node * kLayoutConfigFeatures + static_cast<std::size_t>(tensor) * kDimensions;
        for (std::size_t d = 0; d < std::min<std::size_t>(dimensions.size(), kDimensions); ++d)
          to[begin + d] = static_cast<float>(dimensions[d]);
        ++tensor;
      }
      ++node;
    }
  });
  if (node != nodes)
    throw DataError(fmt::format("{}: has layouts of {} nodes, not {}", where, node, nodes));
}

void write_tile_config(std::span<const char> config, std::span<float> to, std::string_view where) {
  std::vector<std::int64_t> bounds[kTensors];
  checked(where, [&] {
    pbf_reader field{config.data(), config.size()};
    while (field.next()) {
      if (field.tag() <= kTensors) {
        append_integers(field, bounds[field.tag() - 1]);
      } else {
        field.skip();
      }
    }
  });
  FeatureRow row(to.data());
  for (const std::vector<std::int64_t>& list : bounds) row.measured(list, kDimensions, 0);
}

void write_tuned_npz(const TunedModule& tuned, const std::string& where,
                     const std::filesystem::path& npz) {
  if (tuned.runs.empty())
    throw DataError(where + ": has no measured default configuration, so nothing to compare with");
  const HloGraph graph = featurise(tuned.module, where);
  const auto rows = std::ssize(tuned.runs);
  std::vector<std::int64_t> runtime;
  for (const TuningRun& run : tuned.runs) runtime.push_back(run.nanoseconds);

  for (const std::string& part : unknown_parts(graph)) spdlog::warn("{}: {}", where, part);
  NpzWriter writer(npz, kThrownAway);
  add_graph(writer, graph);
  const auto where_run = [&](std::int64_t row) {
    return fmt::format("{}: run {}", where, tuned.runs[row].number);
  };
  if (tuned.tiles) {
    writer.add_streamed<float>(
        "config_feat", {rows, kTileConfigFeatures},
        [&](std::int64_t first, std::span<float> values) {
          for (; !values.empty(); values = values.subspan(kTileConfigFeatures), ++first)
            write_tile_config(tuned.runs[first].config, values.first(kTileConfigFeatures),
                              where_run(first));
        });
    const auto standard = std::ranges::find(tuned.runs, true, &TuningRun::is_default);
    writer.add("config_runtime", {rows}, runtime);
    writer.add("config_runtime_normalizers", {rows},
               std::vector<std::int64_t>(runtime.size(), standard->nanoseconds));
    return writer.finish();
  }
  for (const std::int64_t node : tuned.config_nodes) {
    if (node < 0 || node >= graph.nodes())
      throw DataError(
          fmt::format("{}: configurable node {} is none of {}", where, node, graph.nodes()));
  }
  const auto nodes = std::ssize(tuned.config_nodes);
  const auto width = static_cast<std::size_t>(nodes) * kLayoutConfigFeatures;
  writer.add("node_config_ids", {nodes}, tuned.config_nodes);
  writer.add_streamed<float>("node_config_feat", {rows, nodes, kLayoutConfigFeatures},
                             [&](std::int64_t first, std::span<float> values) {
                               for (; !values.empty(); values = values.subspan(width), ++first)
                                 write_layout_config(tuned.runs[first].config, values.first(width),
                                                     where_run(first));
                             });
  writer.add("config_runtime", {rows}, runtime);
  add_splits(writer, graph);
  writer.finish();
}

LayoutSpace known_space(const TunedModule& tuned, const std::filesystem::path& assigned,
                        const std::string& where, std::vector<std::string>& warnings) {
  LayoutSpace space = layout_space(tuned.module, tuned.config_nodes, where);
  if (space.nodes.empty()) return space;
  const auto standard = std::ranges::find(tuned.runs, true, &TuningRun::is_default);
  if (!assigned.empty()) {
    const HloFile file(assigned);
    if (file.size() != 1)
      throw DataError(fmt::format("{}: holds {} modules; give one, after layout assignment",
                                  assigned.string(), file.size()));
    const std::size_t found = set_standards(space, tuned.module, file.module(0).module);
    if (found == 0)
      throw DataError(
          fmt::format("{}: names none of the configurable operations of {}; give a dump "
                      "of the same program after layout assignment",
                      assigned.string(), where));
    if (found < space.nodes.size())
      warnings.push_back(
          fmt::format("{} of {} operations are not in {}; their defaults are guessed",
                      space.nodes.size() - found, space.nodes.size(), assigned.string()));
  } else if (standard != tuned.runs.end()) {
    const std::vector<std::int64_t>& numbers = tuned.config_nodes;  // in any order
    if (space.nodes.size() != numbers.size())
      throw DataError(
          fmt::format("{}: names {} configurable nodes, but {} different ones of the "
                      "module",
                      where, numbers.size(), space.nodes.size()));
    std::vector<float> config(numbers.size() * kLayoutConfigFeatures), sorted(config.size());
    write_layout_config(standard->config, config, where);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto place = std::ranges::find(numbers, space.nodes[i].node) - numbers.begin();
      std::copy_n(config.begin() + place * kLayoutConfigFeatures, kLayoutConfigFeatures,
                  sorted.begin() + static_cast<std::ptrdiff_t>(i) * kLayoutConfigFeatures);
    }
    set_standards(space, sorted);
  } else {
    warnings.push_back(
        "the default layouts are not known, so groups are made by opcode and states alone; give "
        "the dump after layout assignment with --default");
  }
  group_alike(space);
  return space;
}

void write_configured_npz(const HloGraph& graph, const LayoutSpace& space,
                          const std::vector<LayoutConfig>& configs,
                          const std::filesystem::path& npz) {
  const std::size_t nodes = space.nodes.size(), width = nodes * kLayoutConfigFeatures;
  std::vector<std::int64_t> numbers;
  for (const ConfigurableNode& node : space.nodes) numbers.push_back(node.node);
  NpzWriter writer(npz, kThrownAway);
  add_graph(writer, graph);
  writer.add("node_config_ids", {std::ssize(numbers)}, numbers);
  writer.add_streamed<float>(
      "node_config_feat", {std::ssize(configs), std::ssize(numbers), kLayoutConfigFeatures},
      [&](std::int64_t first, std::span<float> values) {
        for (; !values.empty(); values = values.subspan(width), ++first) {
          const LayoutConfig& config = configs[first];
          for (std::size_t i = 0; i < nodes; ++i)
            std::ranges::copy(
                space.nodes[i].states[config[i]],
                values.begin() + static_cast<std::ptrdiff_t>(i) * kLayoutConfigFeatures);
        }
      });
  if (!graph.node_splits.empty()) add_splits(writer, graph);
  writer.finish();
}

}  // namespace tpudist
