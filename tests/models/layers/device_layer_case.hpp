#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "models/network/executor.hpp"
#include "tests/models/layers/property_network.hpp"
#include "tests/models/score_vectors.hpp"

// A layer on a device, emulated or real, with five members in one call, against the CPU and against
// calls of other members.

namespace tpudist::test {

inline const std::vector<std::uint64_t> kDeviceKeys = {0x1234567, 12, 1ull << 50, 9, 1};
inline constexpr int kDeviceMembers = 5, kDeviceVariants = 5;
inline const std::vector<int> kAllMembers = {0, 1, 2, 3, 4};

// The 1st place's kinds of layers in one network.
inline const LayerSpelling kFirstPlace{
    "residual", "first_place",
    "{layer: residual, blocks: [{layer: instance_norm}, {layer: sage, width: 3, activation: none}, "
    "{layer: channel_attention}, {layer: config_attention}, {layer: dropout}]}"};

struct DeviceCase {
  DeviceCase(const LayerSpelling& spelling, int variant)
      : random(77, variant),
        network(spelling.yaml, variant, variant == 2, pool),
        flat(network.parameters(kDeviceMembers, 31)) {
    const Configurable kind = variant == 2   ? Configurable::tile
                              : variant == 4 ? Configurable::all
                                             : Configurable::few;
    unit = small_unit(random, 1 + variant % 2, variant % 2 ? 3 : 1, kind);
  }
  UnitInput input(bool refined) const {
    return refined ? compact_unit(network.network(), unit) : dense_unit(network.network(), unit);
  }
  std::span<const float> member(int m) const {
    const std::int64_t length = network.network().parameters().length();
    return std::span(flat).subspan(static_cast<std::size_t>(m * length),
                                   static_cast<std::size_t>(length));
  }

  CounterRng random;
  ThreadPool pool{1};
  PropertyNetwork network;
  AlignedFloats flat;
  RepeatedUnit unit;
};

inline void expect_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (expected.numel() == 0) return;
  EXPECT_LE((actual - expected).abs().max().item<double>(), tolerance) << what;
}

// Expects equal scores and gradients in double, up to `tolerance` of the largest.
inline void expect_equal_in_double(const LayerSpelling& spelling, const DeviceContext& place,
                                   double tolerance) {
  for (int variant = 0; variant < kDeviceVariants; ++variant) {
    SCOPED_TRACE(variant);
    const DeviceCase made(spelling, variant);
    for (const bool refined : {false, true}) {
      SCOPED_TRACE(refined ? "refined" : "dense");
      const UnitInput input = made.input(refined);
      const DoubleCall together(made.network, input, made.flat, kDeviceKeys, false, place);
      const at::Tensor scores = together.scores().cpu();
      const std::vector<at::Tensor> gradients = together.gradients();
      std::vector<at::Tensor> of_inputs(2);
      double scale = 1;
      for (int m = 0; m < kDeviceMembers; ++m) {
        const DoubleCall alone(made.network, input, made.member(m), {kDeviceKeys[m]});
        const at::Tensor expected = alone.scores();
        expect_close(scores.narrow(0, m, 1), expected,
                     tolerance * std::max(1.0, expected.abs().max().item<double>()), "scores");
        const std::vector<at::Tensor> own = alone.gradients();
        for (const at::Tensor& gradient : own) {
          if (gradient.numel() > 0) scale = std::max(scale, gradient.abs().max().item<double>());
        }
        for (std::size_t i = 0; i < alone.parameters(); ++i)
          expect_close(gradients[i][m].cpu(), own[i][0], tolerance * scale, alone.names()[i]);
        for (std::size_t i = 0; i < 2; ++i) {
          const at::Tensor& part = own[alone.parameters() + i];
          of_inputs[i] = m == 0 ? part : of_inputs[i] + part;
        }
      }
      // Equal nodes tie for a maximum up to rounding, so the sums of their gradients are compared.
      for (std::size_t i = 0; i < 2; ++i) {
        const at::Tensor x = together.leaves()[together.parameters() + i].detach().cpu();
        const at::Tensor same = (x.unsqueeze(0) == x.unsqueeze(1)).all(2).to(at::kDouble);
        expect_close(same.mm(gradients[together.parameters() + i].cpu()), same.mm(of_inputs[i]),
                     10 * kDeviceMembers * tolerance * scale, "inputs");
      }
    }
  }
}

// The scores and gradients of one call of an executor for some members. `shift`: whether the loss
// of members below `shifting` says that it ignores a shift; `common`: whether the caller still
// wants all scores.
struct FloatCall {
  FloatCall(const Executor& executor, const DeviceCase& made, UnitInput input, bool shift,
            bool common, const std::vector<int>& whose = kAllMembers,
            int shifting = kDeviceMembers) {
    AlignedFloats flat;
    std::vector<std::uint64_t> keys;
    for (const int m : whose) {
      flat.insert(flat.end(), made.member(m).begin(), made.member(m).end());
      keys.push_back(kDeviceKeys[m]);
    }
    const int count = static_cast<int>(whose.size());
    const MemberRange members{flat, 0, count, keys};
    input.use = common ? UnitUse::gradients : UnitUse::differences;
    input.prepared = executor.prepare(input);
    gradients.assign(whose.size(), std::vector<float>(made.member(0).size(), 5.0f));
    const std::vector<std::span<float>> spans(gradients.begin(), gradients.end());
    executor.gradient(
        members, input,
        [&](const UnitScores& given) {
          scores = given;
          ScoreGradient gradient;
          const auto numbers = loss_numbers(input.plan->readout, shift);
          for (int m = 0; m < count; ++m)
            gradient.values.insert(gradient.values.end(), numbers.begin(), numbers.end());
          for (const int m : whose) gradient.translation_invariant.push_back(shift && m < shifting);
          return gradient;
        },
        spans, common);
    if (common) EXPECT_EQ(executor.scores(members, input).delta, scores.delta);
  }
  // The scores of the i-th of these members.
  std::vector<double> scores_of(std::size_t i) const {
    const auto begin = scores.delta.begin() + static_cast<std::int64_t>(i) * scores.configs;
    return {begin, begin + scores.configs};
  }
  UnitScores scores;
  std::vector<std::vector<float>> gradients;  // [members][P]
};

inline at::Tensor tensor_of(const std::vector<float>& values) {
  return at::tensor(values, at::kDouble);
}

// Expects equal scores and gradients of training, in float32. `tolerance` as above; more for a
// softmax of a low temperature, which magnifies rounding.
inline void expect_trains_alike(const LayerSpelling& spelling, const DeviceContext& place,
                                double tolerance) {
  if (spelling.yaml.find("temperature") != std::string::npos) tolerance *= 10;
  for (int variant = 0; variant < kDeviceVariants; ++variant) {
    SCOPED_TRACE(variant);
    DeviceCase made(spelling, variant);
    const NetworkConfig& config = made.network.network().config();
    const FeatureSchema& schema = made.network.network().schema();
    const auto cpu = make_composed_executor(config, schema, false, made.pool),
               device = make_composed_executor(config, schema, false, made.pool, place),
               again = make_composed_executor(config, schema, true, made.pool, place);
    const UnitInput input = made.input(variant % 2 == 0);
    for (const auto& [shift, common] : {std::pair{false, true}, {true, true}, {true, false}}) {
      const FloatCall expected(*cpu, made, input, shift, common),
          actual(*device, made, input, shift, common),
          recomputed(*again, made, input, shift, common);
      EXPECT_EQ(recomputed.scores.delta, actual.scores.delta);
      EXPECT_EQ(recomputed.gradients, actual.gradients);
      const at::Tensor scores = at::tensor(expected.scores.delta, at::kDouble);
      expect_close(at::tensor(actual.scores.delta, at::kDouble), scores,
                   tolerance * std::max(1.0, scores.abs().max().item<double>()), "scores");
      for (int m = 0; m < kDeviceMembers; ++m) {
        const at::Tensor golden = tensor_of(expected.gradients[m]);
        expect_close(tensor_of(actual.gradients[m]), golden,
                     tolerance * std::max(1.0, golden.abs().max().item<double>()), "gradient");
      }
    }
  }
}

// Expects that no bit of a member's scores and gradient depends on the other members of the call.
inline void expect_members_apart(const LayerSpelling& spelling, const DeviceContext& place) {
  for (int variant = 0; variant < kDeviceVariants; ++variant) {
    SCOPED_TRACE(variant);
    DeviceCase made(spelling, variant);
    const auto device = make_composed_executor(
        made.network.network().config(), made.network.network().schema(), false, made.pool, place);
    const UnitInput input = made.input(variant % 2 == 0);
    for (const bool shift : {false, true}) {
      const FloatCall together(*device, made, input, shift, true, kAllMembers, 2);
      for (const std::vector<int>& whose :
           std::vector<std::vector<int>>{{0}, {1}, {2}, {3}, {4}, {3, 0, 4, 2, 1}, {4, 1}}) {
        const FloatCall call(*device, made, input, shift, true, whose, 2);
        for (std::size_t i = 0; i < whose.size(); ++i) {
          const auto m = static_cast<std::size_t>(whose[i]);
          EXPECT_EQ(call.scores_of(i), together.scores_of(m)) << "member " << m;
          EXPECT_EQ(call.gradients[i], together.gradients[m]) << "member " << m;
        }
      }
    }
  }
}

}  // namespace tpudist::test
