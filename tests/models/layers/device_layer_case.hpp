#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "models/executors/composed_executor.hpp"
#include "tests/models/layers/property_network.hpp"
#include "tests/models/score_vectors.hpp"

// A layer on a device, three members in one call, against the CPU, each member alone: for the
// emulated device and for a real one.

namespace tpudist::test {

inline const std::vector<std::uint64_t> kDeviceKeys = {0x1234567, 12, 1ull << 50};
inline constexpr int kDeviceMembers = 3, kDeviceVariants = 5;

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

// Scores and all gradients in double; `tolerance` of the largest.
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
        expect_close(scores.narrow(1, m, 1), expected,
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
      for (std::size_t i = 0; i < 2; ++i)
        expect_close(gradients[together.parameters() + i].cpu(), of_inputs[i],
                     3 * tolerance * scale, "inputs");
    }
  }
}

// The scores and gradients of one call of an executor; `shift`: whether the loss says that it
// ignores one, and `common` whether the caller still wants all scores.
struct FloatCall {
  FloatCall(const Executor& executor, const DeviceCase& made, UnitInput input, bool shift,
            bool common) {
    const MemberRange members{made.flat, 0, kDeviceMembers, kDeviceKeys};
    input.of_differences = !common;
    input.prepared = executor.prepare(input);
    gradients.assign(kDeviceMembers, std::vector<float>(made.member(0).size(), 5.0f));
    const std::vector<std::span<float>> spans(gradients.begin(), gradients.end());
    executor.gradient(
        members, input,
        [&](const UnitScores& given) {
          scores = given;
          ScoreGradient gradient;
          const auto numbers = loss_numbers(input.plan->readout, shift);
          for (int m = 0; m < kDeviceMembers; ++m)
            gradient.values.insert(gradient.values.end(), numbers.begin(), numbers.end());
          gradient.translation_invariant.assign(kDeviceMembers, shift);
          return gradient;
        },
        spans, common);
    if (common) EXPECT_EQ(executor.scores(members, input).delta, scores.delta);
  }
  UnitScores scores;
  std::vector<std::vector<float>> gradients;  // [members][P]
};

inline at::Tensor tensor_of(const std::vector<float>& values) {
  return at::tensor(values, at::kDouble);
}

// What training takes, in float32; `tolerance` as above, but for a softmax of a low temperature,
// which magnifies what is rounded away.
inline void expect_trains_alike(const LayerSpelling& spelling, const DeviceContext& place,
                                double tolerance) {
  if (spelling.yaml.find("temperature") != std::string::npos) tolerance *= 10;
  for (int variant = 0; variant < kDeviceVariants; ++variant) {
    SCOPED_TRACE(variant);
    DeviceCase made(spelling, variant);
    const NetworkConfig& config = made.network.network().config();
    const std::int64_t features = made.network.network().config_features();
    const auto cpu = make_composed_executor(config, features, false, made.pool),
               device = make_composed_executor(config, features, false, made.pool, place),
               again = make_composed_executor(config, features, true, made.pool, place);
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

}  // namespace tpudist::test
