#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "data/synth/layouts.hpp"
#include "data/synth/presets.hpp"
#include "train/scoring/module_search.hpp"

namespace tpudist {

using Point = ConfigSpace::Point;

constexpr std::size_t kMostMeasured = 1000;

// A program with its space and its law.
struct SearchedProgram {
  std::string name;
  synth::Program program;
  synth::LayoutSpace space;
  synth::LayoutCost cost;
  Module module;  // with its default configuration alone
  ConfigSpace points;

  SearchedProgram(const synth::LayoutJob& job, const Collection& collection)
      : name(job.model.name),
        program(synth::build_model(job.model)),
        space(program),
        cost(program, space.choices),
        module(as_module(collection)),
        points(config_space(module.made->space)) {}

  double time(const Point& point) const {
    std::vector<std::uint8_t> groups;
    std::size_t at = 0;
    for (const auto& group : space.groups)
      groups.push_back(static_cast<std::uint8_t>(group.states > 1 ? point[at++] : 0));
    return cost.time(space.codes(groups));
  }

 private:
  Module as_module(const Collection& collection) const {
    auto made = std::make_shared<MadeConfigs>();
    const Graph graph = to_graph(program, name, true);
    for (std::size_t j = 0; j < space.choices.size(); ++j) {
      ConfigurableNode& node = made->space.nodes.emplace_back();
      node.node = graph.config_nodes[j];
      node.name = fmt::format("node_config_ids[{}]", j);
      for (const auto& state : space.choices[j].states) node.states.push_back(state.features);
    }
    for (const auto& group : space.groups) {
      made->space.groups.emplace_back(group.ops.begin(), group.ops.end());
      for (const std::int32_t op : group.ops) made->space.nodes[op].standard = group.chosen;
    }
    made->configs = {made->space.standard()};
    const ConfigSpace own = config_space(made->space);
    GraphEntry entry;
    entry.name = name;
    entry.schema = collection.schema;
    entry.split = "test";
    entry.nodes = graph.nodes;
    DatasetOptions options;
    options.collection = collection;
    options.split = "test";
    const Slate slate = own.slate(std::span(&own.standard_point, 1));
    return {Dataset::of_slate(options, entry, graph, slate), false, {}, 0, std::move(made)};
  }
};

// Measurements of one search, each configuration once, in order.
class Measured {
 public:
  explicit Measured(const SearchedProgram& program) : program_(program) {}
  bool full() const { return times_.size() >= kMostMeasured; }
  // Of a known configuration at no cost; infinity if no measurement is left.
  double time(const Point& point) {
    const auto known = known_.find(point);
    if (known != known_.end()) return known->second;
    if (full()) return std::numeric_limits<double>::infinity();
    times_.push_back(program_.time(point));
    return known_[point] = times_.back();
  }
  const std::map<Point, double>& known() const { return known_; }
  const std::vector<double>& times() const { return times_; }

 private:
  const SearchedProgram& program_;
  std::map<Point, double> known_;
  std::vector<double> times_;
};

// The times that a search without the model measures, in order.
std::vector<double> at_random(const SearchedProgram& program, CounterRng& rng);
std::vector<double> genetic(const SearchedProgram& program, std::uint64_t key);
// From the default; a configuration that is slower by a share s is accepted with exp(-s / T), T from
// 5 % to 0.05 %.
std::vector<double> annealing(const SearchedProgram& program, CounterRng& rng);
// Group by group in random order, all choices of one, the best kept; begins again at random.
void descend(const SearchedProgram& program, Measured& measured, Point point, CounterRng& rng);
std::vector<double> coordinate(const SearchedProgram& program, CounterRng& rng);
// Measures the default and nine random configurations, then rounds of a tenth of what is known: the
// best by trees learned from all measurements, among random configurations and changed good ones, one
// in ten at random.
std::vector<double> surrogate(const SearchedProgram& program, CounterRng& rng);

}  // namespace tpudist
