#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "data/hlo/layout_space.hpp"
#include "data/loading/module_file.hpp"

namespace tpudist {

// The configurations of a layout graph that a search may try. Plain data.
struct ConfigSpace {
  // Configurable nodes that change together.
  struct Group {
    std::vector<std::int32_t> nodes;  // places among the graph's configurable nodes
    // [choices][nodes] the states of the nodes, as rows of `states`
    std::vector<std::vector<std::int32_t>> choices;
  };
  // The choice of each group.
  using Point = std::vector<std::uint16_t>;

  std::vector<float> states;           // [S, kLayoutConfigFeatures], node by node
  std::vector<std::int32_t> offsets;   // [nc + 1] the first of each node's states
  std::vector<std::int32_t> standard;  // [nc] the default configuration, as rows of `states`
  std::vector<Group> groups;           // each has at least two choices
  Point standard_point;                // the default configuration

  double size() const;  // number of configurations
  Point random_point(CounterRng& rng) const;
  // The configuration as states of the layouts that the space was made of.
  LayoutConfig config(const Point& point) const;
  // [nc] its states, as rows of `states`.
  std::vector<std::int32_t> rows(const Point& point) const;
  // These configurations as a slate of graph 0. It has a state table of its own with the states
  // that occur, node by node, each node's by first occurrence.
  Slate slate(std::span<const Point> points) const;
  // The inverse of config(); nothing for a configuration that is not of this space.
  std::optional<Point> point_of(const LayoutConfig& config) const;
  // The same for a row of graph 0.
  std::optional<Point> point_of(const Dataset& data, std::int64_t row) const;
  // The same configurations and those in which each node has a choice of its own.
  ConfigSpace without_groups() const;
  // For a point of without_groups(): the share of configurable nodes that differ from most nodes of
  // their group.
  double broken_share(const Point& free) const;
};

// The number of groups in which two configurations differ.
int distance(const ConfigSpace::Point& a, const ConfigSpace::Point& b);

// The configurations of a module's layouts.
ConfigSpace config_space(const LayoutSpace& layouts);

// The layouts that a module's configurations have. Nodes whose states map one to one in all
// configurations form a group. The default is Module::standard, else configuration 0. Throws
// DataError if states hardly repeat or are no layouts.
LayoutSpace listed_layouts(const Module& module);

}  // namespace tpudist
