#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/random.hpp"
#include "data/synth/cost.hpp"
#include "data/synth/program.hpp"
#include "schema/collection.hpp"

namespace tpudist::synth {

// The choices of a program's configurations: the states of each configurable operation, and which
// operations of equal shape change together.
struct LayoutSpace {
  struct LinkedOps {
    std::vector<std::int32_t> ops;  // configurable operations, by index in `choices`
    bool whole_state = false;       // they share the whole state, not only the output's layout
  };
  std::vector<Choice> choices;    // [nc]
  std::vector<LinkedOps> linked;  // every operation is in exactly one of them

  // Operations of the same kind, output shape and list of states are linked. Every other set of
  // linked operations, chosen by `key`, shares whole states, unless there are only a few sets.
  LayoutSpace(const Program& program, std::uint64_t key);
};

// A set of different configurations, and the order in which they were measured.
struct LayoutConfigs {
  std::int64_t nodes = 0;           // nc
  std::vector<std::uint8_t> codes;  // [d, nc]: states by number
  std::vector<double> time;         // [d]: ns, without noise
  std::vector<std::int32_t> rows;   // [c]: the configuration of each run

  std::span<const std::uint8_t> row(std::int64_t run) const {
    const auto d = static_cast<std::size_t>(rows[static_cast<std::size_t>(run)]);
    const auto width = static_cast<std::size_t>(nodes);
    return std::span(codes).subspan(d * width, width);
  }
};

// `runs` runs of uniformly drawn configurations, about a third of them repeats.
LayoutConfigs random_configs(const LayoutSpace& space, const LayoutCost& cost, std::int64_t runs,
                             std::uint64_t key);

// `runs` runs of a genetic search from the default layouts: mutants of the best ones so far. It
// often returns to known configurations.
LayoutConfigs search_configs(const LayoutSpace& space, const LayoutCost& cost, std::int64_t runs,
                             std::uint64_t key);

}  // namespace tpudist::synth
