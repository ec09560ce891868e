#include "data/synth/layouts.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace tpudist::synth {
namespace {

constexpr double kRepeat = 0.35;  // chance that a run measures a known configuration again
// Chance of the default output layout. One half: another layout then costs as often as it saves,
// unless one knows the layouts of its users.
constexpr double kDefaultOutput = 0.5;
constexpr std::size_t kPool = 32;  // parents of the genetic search
// With fewer sets of linked operations none shares whole states; otherwise there would be hardly
// any configurations.
constexpr std::size_t kFewSets = 4;

std::string_view text_of(std::span<const std::uint8_t> codes) {
  return {reinterpret_cast<const char*>(codes.data()), codes.size()};
}

// Changes states of one configuration in place, keeping linked operations together.
class Mutator {
 public:
  Mutator(const LayoutSpace& space, CounterRng& rng) : space_(space), rng_(rng) {}

  void randomise(std::span<std::uint8_t> codes) {
    for (const auto& linked : space_.linked) redraw_all(linked, codes);
  }

  // Redraws linked operations, or a single one with its output's layout as it is.
  void mutate(std::span<std::uint8_t> codes) {
    const auto& linked = space_.linked[rng_.below(space_.linked.size())];
    if (linked.whole_state || rng_.uniform() < 0.3) {
      redraw_all(linked, codes);
    } else {
      const std::int32_t node = linked.ops[rng_.below(linked.ops.size())];
      std::uint8_t& code = codes[static_cast<std::size_t>(node)];
      code = draw(node, code);
    }
  }

 private:
  // A state of `node` with the same output layout as state `like`.
  std::uint8_t draw(std::int32_t node, std::uint8_t like) {
    const auto& states = space_.choices[static_cast<std::size_t>(node)].states;
    std::array<std::uint8_t, kMaxStates> fitting;
    std::size_t count = 0;
    for (std::size_t s = 0; s < states.size(); ++s) {
      if (states[s].output == states[like].output) fitting[count++] = static_cast<std::uint8_t>(s);
    }
    return fitting[rng_.below(count)];
  }

  void redraw_all(const LayoutSpace::LinkedOps& linked, std::span<std::uint8_t> codes) {
    const std::int32_t first = linked.ops[0];
    const auto& states = space_.choices[static_cast<std::size_t>(first)].states;
    // The first and the middle state differ in the output's layout (see make_choice).
    const bool other = rng_.uniform() >= kDefaultOutput;
    const auto like = static_cast<std::uint8_t>(other ? states.size() / 2 : 0);
    const std::uint8_t shared = draw(first, like);
    for (const std::int32_t node : linked.ops) {
      codes[static_cast<std::size_t>(node)] = linked.whole_state ? shared : draw(node, like);
    }
  }

  const LayoutSpace& space_;
  CounterRng& rng_;
};

LayoutConfigs empty_configs(const LayoutSpace& space, std::int64_t runs) {
  LayoutConfigs configs;
  configs.nodes = std::ssize(space.choices);
  configs.rows.reserve(static_cast<std::size_t>(runs));
  return configs;
}

}  // namespace

LayoutSpace::LayoutSpace(const Program& program, std::uint64_t key) {
  using Key = std::tuple<std::uint8_t, std::array<std::int64_t, 5>,
                         std::vector<std::array<std::int8_t, kLayoutConfigFeatures>>>;
  std::map<Key, std::size_t> known;
  for (std::int32_t i = 0; i < program.nodes(); ++i) {
    if (!program[i].configurable()) continue;
    Choice choice = make_choice(program, i);
    Key kind{program[i].code, program[i].shape.dims, {}};
    for (const auto& state : choice.states) std::get<2>(kind).push_back(state.features);
    const auto [entry, is_new] = known.try_emplace(kind, linked.size());
    if (is_new) linked.emplace_back();
    linked[entry->second].ops.push_back(static_cast<std::int32_t>(choices.size()));
    choices.push_back(std::move(choice));
  }
  if (linked.size() < kFewSets) return;
  for (std::size_t i = 0; i < linked.size(); ++i) {
    linked[i].whole_state = CounterRng(key, i).below(2) == 0;
  }
}

LayoutConfigs random_configs(const LayoutSpace& space, const LayoutCost& cost, std::int64_t runs,
                             std::uint64_t key) {
  CounterRng rng(key);
  Mutator mutator(space, rng);
  LayoutConfigs configs = empty_configs(space, runs);
  std::vector<std::uint8_t> codes(space.choices.size());
  while (std::ssize(configs.rows) < runs) {
    if (!configs.rows.empty() && rng.uniform() < kRepeat) {
      configs.rows.push_back(static_cast<std::int32_t>(rng.below(configs.time.size())));
      continue;
    }
    mutator.randomise(codes);
    configs.rows.push_back(static_cast<std::int32_t>(configs.time.size()));
    configs.codes.insert(configs.codes.end(), codes.begin(), codes.end());
    configs.time.push_back(cost.time(codes));
  }
  return configs;
}

LayoutConfigs search_configs(const LayoutSpace& space, const LayoutCost& cost, std::int64_t runs,
                             std::uint64_t key) {
  CounterRng rng(key);
  Mutator mutator(space, rng);
  LayoutConfigs configs = empty_configs(space, runs);
  const std::size_t width = space.choices.size();
  std::vector<std::uint8_t> codes(width);                    // the default: state 0 everywhere
  std::unordered_multimap<std::size_t, std::int32_t> known;  // by hash of the codes
  std::vector<std::int32_t> pool;                            // the best ones, fastest first
  const auto faster = [&](std::int32_t a, std::int32_t b) {
    return configs.time[static_cast<std::size_t>(a)] < configs.time[static_cast<std::size_t>(b)];
  };
  const auto codes_of = [&](std::int32_t d) {
    return std::span(configs.codes).subspan(static_cast<std::size_t>(d) * width, width);
  };
  while (std::ssize(configs.rows) < runs) {
    if (!pool.empty()) {
      if (rng.uniform() < kRepeat / 2) {
        configs.rows.push_back(static_cast<std::int32_t>(rng.below(configs.time.size())));
        continue;
      }
      // The square prefers the best parents.
      const double rank = rng.uniform() * rng.uniform() * static_cast<double>(pool.size());
      std::ranges::copy(codes_of(pool[static_cast<std::size_t>(rank)]), codes.begin());
      do mutator.mutate(codes);
      while (rng.uniform() < 0.7);
    }
    const std::size_t hash = std::hash<std::string_view>{}(text_of(codes));
    const auto [first, last] = known.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& entry) {
      return std::ranges::equal(codes_of(entry.second), codes);
    });
    if (same != last) {
      configs.rows.push_back(same->second);
      continue;
    }
    const auto d = static_cast<std::int32_t>(configs.time.size());
    configs.rows.push_back(d);
    configs.codes.insert(configs.codes.end(), codes.begin(), codes.end());
    configs.time.push_back(cost.time(codes));
    known.emplace(hash, d);
    pool.insert(std::ranges::upper_bound(pool, d, faster), d);
    if (pool.size() > kPool) pool.pop_back();
  }
  return configs;
}

}  // namespace tpudist::synth
