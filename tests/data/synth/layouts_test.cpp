#include "data/synth/layouts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "data/synth/measure.hpp"
#include "data/synth/models.hpp"
#include "data/synth/tile.hpp"

namespace tpudist::synth {
namespace {

Program small_model(Style style = Style::residual_conv) {
  ModelSpec spec;
  spec.name = "x";
  spec.style = style;
  spec.width = 128;
  spec.nodes = 400;
  return build_model(spec);
}

std::vector<int> values(const Choice::State& state) {
  return {state.features.begin(), state.features.end()};
}

TEST(SynthLayouts, statesOfTheFirstConvolutionAreThoseOfTheRealOne) {
  const Program program = small_model();
  const LayoutSpace space(program, 1);
  const auto& states = space.choices[0].states;
  ASSERT_EQ(program[space.choices[0].op].convolution, ConvolutionKind::forward);
  ASSERT_EQ(states.size(), 8u);
  const int _ = -1;
  EXPECT_EQ(values(states[0]), (std::vector{3, 0, _, _, _, _, 3, 0, _, _, _, _, 3, 2, _, _, _, _}));
  EXPECT_EQ(values(states[7]), (std::vector{0, 3, _, _, _, _, 0, 3, _, _, _, _, 2, 3, _, _, _, _}));
}

TEST(SynthLayouts, everyKindHasItsFewStates) {
  std::map<int, std::set<std::size_t>> counts;
  for (const Style style : {Style::residual_conv, Style::volume_conv, Style::transformer}) {
    const Program program = small_model(style);
    for (const Choice& choice : LayoutSpace(program, 1).choices) {
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

TEST(SynthLayouts, outputsOfEqualShapesFlipTogether) {
  const Program program = small_model();
  const LayoutSpace space(program, 1);
  const LayoutCost cost(program, space.choices);
  for (const bool random : {true, false}) {
    const auto configs = (random ? random_configs : search_configs)(space, cost, 500, 3);
    for (std::int64_t run = 0; run < 500; ++run) {
      const auto codes = configs.row(run);
      for (const auto& linked : space.linked) {
        std::set<std::pair<int, int>> outputs;
        for (const std::int32_t j : linked.ops) {
          const auto at = static_cast<std::size_t>(j);
          const Layout output = space.choices[at].states[codes[at]].output;
          outputs.emplace(output.minor, output.second);
        }
        ASSERT_EQ(outputs.size(), 1u);
      }
    }
  }
}

TEST(SynthLayouts, fewSetsOfLinkedOperationsStillGiveManyConfigurations) {
  ModelSpec spec;
  spec.name = "x";
  spec.style = Style::recurrent;  // every dot has one shape
  spec.batch = 8;
  spec.sequence = 64;
  spec.width = 512;
  spec.nodes = 300;
  const Program program = build_model(spec);
  for (std::uint64_t key = 0; key < 4; ++key) {
    const LayoutSpace space(program, key);
    EXPECT_LT(space.linked.size(), 4u);
    const LayoutCost cost(program, space.choices);
    const LayoutConfigs configs = random_configs(space, cost, 500, 3);
    std::set<std::vector<std::uint8_t>> distinct;
    for (std::int64_t run = 0; run < 500; ++run) {
      const auto row = configs.row(run);
      distinct.emplace(row.begin(), row.end());
    }
    EXPECT_GT(distinct.size(), 250u);
  }
}

TEST(SynthLayouts, aboutAThirdOfTheRunsRepeatAConfiguration) {
  const Program program = small_model();
  const LayoutSpace space(program, 1);
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
  for (const Style style : {Style::residual_conv, Style::transformer}) {
    const Program program = small_model(style);
    const LayoutSpace space(program, 1);
    const LayoutCost cost(program, space.choices);
    const auto quantile = [](std::vector<double> time, double q) {
      std::ranges::sort(time);
      return time[static_cast<std::size_t>(q * static_cast<double>(time.size()))];
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
  program.add(opcode::dot, Dtype::f32, square, {between, x});
  program.ops.back().flops = 2.0 * 256 * 256 * 256;
  const LayoutSpace space(program, 1);
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
  // A dot that takes its operands as they come never waits for a copy, but computes slower.
  const std::uint8_t any[] = {4, 8}, agreeing[] = {4, 2};
  EXPECT_EQ(cost.pair_part(any), 0);
  EXPECT_GT(cost.single_part(any), cost.single_part(agreeing));
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
