#include "results/report/run_times_page.hpp"

#include <algorithm>
#include <variant>

#include "data/schema/lanes.hpp"

namespace tpudist {
namespace {

// The largest dimensions of each configurable node's output, as bits; 0: it has none.
std::vector<std::int32_t> largest_dimensions_of(const Graph& graph, const ColumnRange& columns) {
  std::vector<std::int32_t> bits;
  for (const std::int32_t node : graph.config_nodes) {
    const auto sizes = std::span(graph.node_features)
                           .subspan(static_cast<std::size_t>(node) * graph.feature_count() +
                                        static_cast<std::size_t>(columns.first),
                                    static_cast<std::size_t>(columns.count));
    bits.push_back(largest_dimensions(sizes));
  }
  return bits;
}

// The first feature of each configurable node in configurations first .. first + count - 1.
std::vector<float> first_features(const GraphReader& reader, const ConfigStates& states,
                                  std::int64_t columns, std::int64_t first, std::int64_t count) {
  std::vector<float> features;
  if (!reader.coded()) {
    const std::vector<float> all = reader.read_config_features(first, count);
    for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(columns))
      features.push_back(all[at]);
    return features;
  }
  const std::size_t nodes = states.offsets.size() - 1;
  std::visit(
      [&](const auto& codes) {
        for (std::size_t at = 0; at < codes.size(); ++at) {
          const auto state = static_cast<std::int64_t>(states.offsets[at % nodes]) + codes[at];
          features.push_back(states.features[static_cast<std::size_t>(state * columns)]);
        }
      },
      reader.read_codes(first, count));
  return features;
}

}  // namespace

std::vector<double> output_violations(const GraphEntry& entry) {
  const FeatureSchema& schema = entry.schema;
  const int width = schema.layout_columns.count;
  if (width == 0 || width > 24 || schema.dimension_columns.count != width) return {};
  const GraphReader reader(entry);
  const std::vector<std::int32_t> largest =
      largest_dimensions_of(reader.read_graph(), schema.dimension_columns);
  const ConfigStates states = reader.coded() ? reader.read_states() : ConfigStates{};
  const std::int64_t step = std::max<std::int64_t>(1, reader.chunk_rows());
  std::vector<double> ratios;
  bool counted = false;
  for (std::int64_t first = 0; first < entry.configs; first += step) {
    const std::int64_t count = std::min(step, entry.configs - first);
    const std::vector<float> lanes_of =
        first_features(reader, states, schema.config_features, first, count);
    for (std::size_t at = 0; at < lanes_of.size();) {
      double nodes = 0, violations = 0;
      for (const std::int32_t bits : largest) {
        const int lanes = static_cast<int>(lanes_of[at++]);
        if (bits == 0 || lanes < 0) continue;
        ++nodes;
        violations += violates(bits, lanes);
      }
      counted = counted || nodes > 0;
      ratios.push_back(nodes > 0 ? violations / nodes : 0);
    }
  }
  return counted ? ratios : std::vector<double>{};
}

}  // namespace tpudist
