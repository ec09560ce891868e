#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "data/synth/cost.hpp"
#include "data/synth/program.hpp"

namespace tpudist::synth {

// The choices of a program's configurations, and the operations that change together.
struct LayoutSpace {
  // Operations that always have the same state. `chosen`: the default state, which each would take
  // if copies were free.
  struct Group {
    std::vector<std::int32_t> ops;  // configurable operations, by index in `choices`
    std::uint8_t chosen = 0;
    std::size_t states = 0;
  };
  std::vector<Choice> choices;  // [nc]
  std::vector<Group> groups;    // every operation is in exactly one

  // Operations of one kind, list of states and default state form a group, as in the real graphs
  // with a known default. If that gives too few groups, operands must also have equal shapes; if
  // still too few, each operation is a group.
  explicit LayoutSpace(const Program& program);

  // States of all operations [nc], from those of the groups.
  std::vector<std::uint8_t> codes(std::span<const std::uint8_t> of_groups) const;
};

// A set of different configurations, and the order in which they were measured.
struct LayoutConfigs {
  std::int64_t nodes = 0;           // nc
  std::vector<std::uint8_t> codes;  // [d, nc]: states by number
  std::vector<double> time;         // [d]: ns, without noise
  std::vector<std::int32_t> rows;   // [c]: the configuration of each run

  std::span<const std::uint8_t> row(std::int64_t run) const {
    const auto d = static_cast<std::size_t>(rows[run]);
    const auto width = static_cast<std::size_t>(nodes);
    return std::span(codes).subspan(d * width, width);
  }
};

// `runs` runs of uniformly drawn configurations, about a third of them repeats.
LayoutConfigs random_configs(const LayoutSpace& space, const LayoutCost& cost, std::int64_t runs,
                             std::uint64_t key);

// `runs` runs of a genetic search from the default configuration: mutants of the best so far. The
// search often returns to known configurations.
LayoutConfigs search_configs(const LayoutSpace& space, const LayoutCost& cost, std::int64_t runs,
                             std::uint64_t key);

// The noise of a graph's run times (SD of the logarithm), log-uniform between 0.05 and 0.4 %.
double noise_level(std::uint64_t key);

// Measures `time` (ns) once more, with log-normal noise. At least 1.
std::int64_t measure(double time, double level, CounterRng& rng);

// Corrupts two stretches of a graph's runs, together a `share` of them: another state of the
// machine, and an unsteady one.
void corrupt(std::vector<std::int64_t>& runtime, double share, std::uint64_t key);

}  // namespace tpudist::synth
