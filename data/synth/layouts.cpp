#include "data/synth/layouts.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace tpudist::synth {
namespace {

constexpr double kRepeat = 0.35;       // chance that a random run repeats a known configuration
constexpr std::size_t kPool = 32;      // parents of the genetic search
constexpr std::size_t kFewGroups = 5;  // with fewer there are hardly any configurations

using States = std::vector<std::uint8_t>;  // of the groups

// Measures configurations and keeps each once.
class Runs {
 public:
  Runs(const LayoutSpace& space, const LayoutCost& cost) : space_(space), cost_(cost) {
    configs_.nodes = std::ssize(space.choices);
  }

  // Returns the number of the configuration.
  std::int32_t measure(const States& states) {
    const auto [entry, is_new] =
        known_.try_emplace(states, static_cast<std::int32_t>(configs_.time.size()));
    if (is_new) {
      const std::vector<std::uint8_t> codes = space_.codes(states);
      configs_.codes.insert(configs_.codes.end(), codes.begin(), codes.end());
      configs_.time.push_back(cost_.time(codes));
    }
    configs_.rows.push_back(entry->second);
    return entry->second;
  }
  void repeat(CounterRng& rng) {
    configs_.rows.push_back(static_cast<std::int32_t>(rng.below(configs_.time.size())));
  }
  std::int64_t count() const { return std::ssize(configs_.rows); }
  std::size_t distinct() const { return configs_.time.size(); }
  double time(std::int32_t number) const { return configs_.time[number]; }
  LayoutConfigs take() { return std::move(configs_); }

 private:
  const LayoutSpace& space_;
  const LayoutCost& cost_;
  LayoutConfigs configs_;
  std::map<States, std::int32_t> known_;
};

// What operations of a group have in common: kind, states and default state. With `narrow` 1 also
// the shapes of their operands; with 2 each operation has its own key.
std::vector<std::int64_t> key_of(const Program& program, const Choice& choice, std::uint8_t chosen,
                                 int narrow) {
  std::vector<std::int64_t> key{program[choice.op].code, chosen, narrow < 2 ? -1 : choice.op};
  for (const auto& state : choice.states)
    key.insert(key.end(), state.features.begin(), state.features.end());
  for (const std::int32_t operand : program[choice.op].operands) {
    const Shape& shape = program[operand].shape;
    if (narrow) key.insert(key.end(), shape.dims.begin(), shape.dims.end());
  }
  return key;
}

enum MeasureStream : std::uint64_t { kLevel = 4, kCorruption };

}  // namespace

LayoutSpace::LayoutSpace(const Program& program) {
  for (std::int32_t i = 0; i < program.nodes(); ++i) {
    if (program[i].configurable()) choices.push_back(make_choice(program, i));
  }
  for (int narrow = 0; narrow < 3 && groups.size() < kFewGroups; ++narrow) {
    std::map<std::vector<std::int64_t>, std::size_t> known;
    groups.clear();
    for (std::size_t j = 0; j < choices.size(); ++j) {
      const auto chosen = static_cast<std::uint8_t>(cheapest_state(program, choices[j]));
      const auto [entry, is_new] =
          known.try_emplace(key_of(program, choices[j], chosen, narrow), groups.size());
      if (is_new) groups.push_back({{}, chosen, choices[j].states.size()});
      groups[entry->second].ops.push_back(static_cast<std::int32_t>(j));
    }
  }
}

std::vector<std::uint8_t> LayoutSpace::codes(std::span<const std::uint8_t> of_groups) const {
  std::vector<std::uint8_t> all(choices.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::int32_t op : groups[g].ops) all[op] = of_groups[g];
  }
  return all;
}

LayoutConfigs random_configs(const LayoutSpace& space, const LayoutCost& cost, std::int64_t runs,
                             std::uint64_t key) {
  CounterRng rng(key);
  Runs measured(space, cost);
  States states(space.groups.size());
  while (measured.count() < runs) {
    if (measured.count() > 0 && rng.uniform() < kRepeat) {
      measured.repeat(rng);
    } else {
      for (std::size_t g = 0; g < states.size(); ++g)
        states[g] = static_cast<std::uint8_t>(rng.below(space.groups[g].states));
      measured.measure(states);
    }
  }
  return measured.take();
}

LayoutConfigs search_configs(const LayoutSpace& space, const LayoutCost& cost, std::int64_t runs,
                             std::uint64_t key) {
  CounterRng rng(key);
  Runs measured(space, cost);
  std::vector<std::pair<double, States>> pool;  // the best ones, fastest first
  while (measured.count() < runs) {
    States states;
    if (pool.empty()) {
      for (const auto& group : space.groups) states.push_back(group.chosen);
    } else {
      // The square prefers the best parents.
      const double rank = rng.uniform() * rng.uniform() * static_cast<double>(pool.size());
      states = pool[rank].second;
      do {
        const std::size_t g = rng.below(states.size());
        states[g] = static_cast<std::uint8_t>(rng.below(space.groups[g].states));
      } while (rng.uniform() < 0.7);
    }
    const std::size_t before = measured.distinct();
    const double time = measured.time(measured.measure(states));
    if (measured.distinct() == before) continue;
    const std::pair entry(time, states);
    pool.insert(std::ranges::upper_bound(pool, entry), entry);
    if (pool.size() > kPool) pool.pop_back();
  }
  return measured.take();
}

double noise_level(std::uint64_t key) {
  CounterRng rng(mix_key({key, kLevel}));
  return 0.0005 * std::pow(8.0, rng.uniform());
}

std::int64_t measure(double time, double level, CounterRng& rng) {
  return std::max<std::int64_t>(1, std::llround(time * std::exp(level * rng.normal())));
}

void corrupt(std::vector<std::int64_t>& runtime, double share, std::uint64_t key) {
  CounterRng rng(mix_key({key, kCorruption}));
  const auto length = static_cast<std::size_t>(share / 2 * static_cast<double>(runtime.size()));
  for (int stretch = 0; stretch < 2 && length > 0; ++stretch) {
    const double factor = std::exp(rng.uniform(0.3, 0.9));
    const std::size_t begin = rng.below(runtime.size() - length + 1);
    for (std::size_t i = begin; i < begin + length; ++i) {
      runtime[i] = measure(factor * static_cast<double>(runtime[i]), 0.2, rng);
    }
  }
}

}  // namespace tpudist::synth
