#include "data/synth/layouts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "data/synth/models.hpp"
#include "data/synth/presets.hpp"
#include "data/synth/tile.hpp"

namespace tpudist::synth {
namespace {

Program small_model(Kind kind = Kind::convolution, std::uint64_t family = 3) {
  ModelSpec spec;
  spec.name = "x";
  spec.kind = kind;
  spec.family = family;
  spec.nodes = 400;
  return build_model(spec);
}

std::vector<std::uint8_t> default_codes(const LayoutSpace& space) {
  std::vector<std::uint8_t> states;
  for (const auto& group : space.groups) states.push_back(group.chosen);
  return space.codes(states);
}

std::vector<int> values(const Choice::State& state) {
  return {state.features.begin(), state.features.end()};
}

TEST(SynthLayouts, statesOfTheFirstConvolutionAreThoseOfTheRealOne) {
  const Program program = small_model();
  const LayoutSpace space(program);
  const auto& states = space.choices[0].states;
  ASSERT_EQ(program[space.choices[0].op].convolution, ConvolutionKind::forward);
  ASSERT_EQ(states.size(), 8u);
  const int _ = -1;
  EXPECT_EQ(values(states[0]), (std::vector{3, 0, _, _, _, _, 3, 0, _, _, _, _, 3, 2, _, _, _, _}));
  EXPECT_EQ(values(states[7]), (std::vector{0, 3, _, _, _, _, 0, 3, _, _, _, _, 2, 3, _, _, _, _}));
}

TEST(SynthLayouts, everyKindHasItsFewStates) {
  std::map<int, std::set<std::size_t>> counts;
  for (const Kind kind : {Kind::convolution, Kind::attention}) {
    const Program program = small_model(kind);
    for (const Choice& choice : LayoutSpace(program).choices) {
      counts[program[choice.op].code].insert(choice.states.size());
      std::set<std::vector<int>> distinct;
      for (const auto& state : choice.states) {
        distinct.insert(values(state));
        for (const int value : values(state)) EXPECT_TRUE(value >= -1 && value <= 5);
      }
      EXPECT_EQ(distinct.size(), choice.states.size());
    }
  }
  EXPECT_EQ(counts[opcode::convolution], (std::set<std::size_t>{8}));
  EXPECT_EQ(counts[opcode::dot], (std::set<std::size_t>{9}));
  EXPECT_EQ(counts[opcode::reshape], (std::set<std::size_t>{2}));
}

constexpr Kind kKinds[] = {Kind::convolution, Kind::attention, Kind::recurrent, Kind::mixture,
                           Kind::embedding};

// Operations of one kind whose default has the same features have equal features in every
// configuration, unless there would be hardly any.
TEST(SynthLayouts, operationsOfEqualDefaultChangeTogether) {
  int checked = 0;
  for (const Kind kind : kKinds) {
    const Program program = small_model(kind);
    const LayoutSpace space(program);
    const LayoutCost cost(program, space.choices);
    using Key = std::pair<int, std::vector<int>>;
    std::map<Key, std::vector<std::size_t>> alike;
    const std::vector<std::uint8_t> defaults = default_codes(space);
    for (std::size_t j = 0; j < space.choices.size(); ++j) {
      const Choice& choice = space.choices[j];
      EXPECT_EQ(defaults[j], cheapest_state(program, choice));
      alike[{program[choice.op].code, values(choice.states[defaults[j]])}].push_back(j);
    }
    EXPECT_GE(space.groups.size(), 5u);
    if (alike.size() != space.groups.size()) continue;
    ++checked;
    for (const bool random : {true, false}) {
      const auto configs = (random ? random_configs : search_configs)(space, cost, 300, 3);
      for (std::int64_t run = 0; run < 300; ++run) {
        const auto codes = configs.row(run);
        for (const auto& [key, ops] : alike) {
          for (const std::size_t j : ops)
            ASSERT_EQ(values(space.choices[j].states[codes[j]]),
                      values(space.choices[ops[0]].states[codes[ops[0]]]));
        }
      }
    }
  }
  EXPECT_GE(checked, 3);
}

TEST(SynthLayouts, fewGroupsStillGiveManyConfigurations) {
  for (const Kind kind : kKinds) {
    for (std::uint64_t family = 0; family < 4; ++family) {
      const Program program = small_model(kind, family);
      const LayoutSpace space(program);
      const LayoutCost cost(program, space.choices);
      EXPECT_GT(random_configs(space, cost, 500, 3).time.size(), 250u);
    }
  }
}

// The best of coordinate descents from the default and from random configurations.
double best_known(const LayoutSpace& space, const LayoutCost& cost) {
  CounterRng rng(7);
  double best = std::numeric_limits<double>::infinity();
  for (int start = 0; start < 8; ++start) {
    std::vector<std::uint8_t> states;
    for (const auto& group : space.groups)
      states.push_back(start ? static_cast<std::uint8_t>(rng.below(group.states)) : group.chosen);
    double time = cost.time(space.codes(states));
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t g = 0; g < states.size(); ++g) {
        for (std::size_t s = 0; s < space.groups[g].states; ++s) {
          const std::uint8_t before = std::exchange(states[g], static_cast<std::uint8_t>(s));
          const double other = cost.time(space.codes(states));
          if (other < time * (1 - 1e-12)) {
            time = other;
            moved = true;
          } else {
            states[g] = before;
          }
        }
      }
    }
    best = std::min(best, time);
  }
  return best;
}

TEST(SynthLayouts, theDefaultLeavesSomethingToFind) {
  for (const char* source : {"xla", "nlp"}) {
    Plan plan =
        source == std::string("xla") ? *preset_named("demo").xla : *preset_named("demo").nlp;
    plan.graphs = {16, 8, 8};
    for (const std::uint64_t seed : {1, 2, 3}) {
      int graphs = 0, within = 0;
      for (const LayoutJob& job : layout_jobs(plan, source, seed)) {
        const Program program = build_model(job.model);
        const LayoutSpace space(program);
        const LayoutCost cost(program, space.choices);
        const double gap = cost.time(default_codes(space)) / best_known(space, cost) - 1;
        EXPECT_GE(gap, 0) << job.model.name;
        ++graphs;
        within += gap >= 0.02 && gap <= 0.3;
      }
      RecordProperty(source + std::to_string(seed), within);
      EXPECT_GE(4 * within, 3 * graphs) << source << " " << seed;
    }
  }
}

TEST(SynthLayouts, aboutAThirdOfTheRunsRepeatAConfiguration) {
  const Program program = small_model();
  const LayoutSpace space(program);
  const LayoutCost cost(program, space.choices);
  for (const bool random : {true, false}) {
    const auto configs = (random ? random_configs : search_configs)(space, cost, 4000, 3);
    const std::set<std::int32_t> distinct(configs.rows.begin(), configs.rows.end());
    EXPECT_EQ(configs.rows.size(), 4000u);
    EXPECT_EQ(distinct.size(), configs.time.size());
    EXPECT_GT(distinct.size(), 4000 * 0.5);
    EXPECT_LT(distinct.size(), 4000 * 0.8);
  }
}

TEST(SynthLayouts, theSearchedSetLiesNearTheGoodOnes) {
  for (const Kind kind : {Kind::convolution, Kind::attention}) {
    const Program program = small_model(kind);
    const LayoutSpace space(program);
    const LayoutCost cost(program, space.choices);
    const auto quantile = [](std::vector<double> time, double q) {
      std::ranges::sort(time);
      return time[q * static_cast<double>(time.size())];
    };
    const auto random = random_configs(space, cost, 2000, 3);
    const auto searched = search_configs(space, cost, 2000, 3);
    EXPECT_LT(quantile(searched.time, 0), quantile(random.time, 0));
    EXPECT_LT(quantile(searched.time, 0.5), quantile(random.time, 0.05));
    EXPECT_GT(quantile(searched.time, 0.99),
              quantile(random.time, 0.05));  // it has to start somewhere
  }
}

TEST(SynthCost, anAgreementOfNeighboursSavesACopy) {
  // dot -> tanh -> dot: the second one's input goes through the elementwise operation.
  Program program;
  const Shape square{256, 256};
  const auto x = program.add(opcode::parameter, Dtype::f32, square);
  const auto first = program.add(opcode::dot, Dtype::f32, square, {x, x});
  const auto between = program.add(opcode::tanh, Dtype::f32, square, {first});
  const auto second = program.add(opcode::dot, Dtype::f32, square, {between, x});
  for (const std::int32_t op : {first, second}) {
    program.ops[op].flops = 2.0 * 256 * 256 * 256;
    program.ops[op].contracted = {1, 0};
  }
  const LayoutSpace space(program);
  const LayoutCost cost(program, space.choices);
  // States of a dot: bit 2 swaps the output, bit 1 the input, bit 0 the kernel.
  const auto pair = [&](int output, int input) {
    const std::uint8_t codes[] = {static_cast<std::uint8_t>(4 * output),
                                  static_cast<std::uint8_t>(2 * input)};
    return cost.pair_part(codes);
  };
  EXPECT_EQ(pair(0, 0), 0);
  EXPECT_EQ(pair(1, 1), 0);
  EXPECT_GT(pair(0, 1), 0);
  EXPECT_EQ(pair(0, 1), pair(1, 0));
  // A dot that takes its operands as they come never waits for a copy, but computes slower than with
  // the summed dimensions along the lanes, which costs a copy of the kernel.
  const std::uint8_t any[] = {0, 8}, normal[] = {0, 0};
  EXPECT_EQ(cost.pair_part(any), 0);
  EXPECT_NE(cost.single_part(any), cost.single_part(normal));
  EXPECT_EQ(cheapest_state(program, space.choices[1]), 1u);
}

TEST(SynthMeasure, noiseIsLogNormalOfTheStatedLevel) {
  std::vector<double> levels;
  for (std::uint64_t key = 0; key < 200; ++key) levels.push_back(noise_level(key));
  EXPECT_GE(*std::ranges::min_element(levels), 0.0005);
  EXPECT_LE(*std::ranges::max_element(levels), 0.004);
  EXPECT_LT(*std::ranges::min_element(levels), 0.0006);
  EXPECT_GT(*std::ranges::max_element(levels), 0.0035);
  CounterRng rng(1);
  double sum = 0, squares = 0;
  constexpr int kRuns = 10000;
  for (int i = 0; i < kRuns; ++i) {
    const double z = std::log(static_cast<double>(measure(1e9, 0.002, rng)) / 1e9);
    sum += z / kRuns;
    squares += z * z / kRuns;
  }
  EXPECT_NEAR(sum, 0, 0.0001);
  EXPECT_NEAR(std::sqrt(squares), 0.002, 0.0001);
}

TEST(SynthMeasure, corruptionIsASmallShareInStretches) {
  std::vector<std::int64_t> runtime(1000, 1000000);
  corrupt(runtime, 0.04, 9);
  int spoiled = 0, borders = 0;
  for (std::size_t i = 0; i < runtime.size(); ++i) {
    spoiled += runtime[i] != 1000000;
    borders += i > 0 && (runtime[i] != 1000000) != (runtime[i - 1] != 1000000);
  }
  EXPECT_GE(spoiled, 20);
  EXPECT_LE(spoiled, 40);
  EXPECT_LE(borders, 4);
  corrupt(runtime, 0, 9);
}

TEST(SynthTile, kernelsHaveTheirSizeAndTilingsFitTheShape) {
  for (const std::int64_t nodes : {2, 3, 12, 40, 300}) {
    for (std::uint64_t key = 0; key < 20; ++key) {
      const KernelSpec spec{"k", nodes, 60, key};
      const Program kernel = build_kernel(spec);
      EXPECT_EQ(kernel.nodes(), nodes);
      const TileConfigs configs = tile_configs(spec, kernel);
      const std::size_t count = configs.time.size();
      EXPECT_GE(count, 2u);
      ASSERT_EQ(configs.features.size(), count * kTileConfigFeatures);
      for (std::size_t i = 0; i < count; ++i) {
        const auto row =
            std::span(configs.features).subspan(i * kTileConfigFeatures, kTileConfigFeatures);
        EXPECT_EQ(row[14], std::accumulate(row.begin() + 8, row.begin() + 14, 0.0f));
        EXPECT_GT(row[15], 0);
        EXPECT_GT(configs.time[i], 0);
      }
    }
  }
}

TEST(SynthTile, theTilingMattersAndTheRuleOfThumbIsGood) {
  double spread = 0, best_share = 0;
  constexpr int kKernels = 40;
  for (std::uint64_t key = 0; key < kKernels; ++key) {
    const KernelSpec spec{"k", 30, 200, key};
    const TileConfigs configs = tile_configs(spec, build_kernel(spec));
    const auto [low, high] = std::ranges::minmax(configs.time);
    spread += high / low / kKernels;
    best_share += low / configs.default_time / kKernels;
  }
  EXPECT_GT(spread, 5);
  EXPECT_GT(best_share, 0.7);    // run time / normalizer of the best
  EXPECT_LT(best_share, 0.999);  // but there is something to find
}

}  // namespace
}  // namespace tpudist::synth
