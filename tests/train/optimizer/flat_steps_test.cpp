// The emulated kernels of flat_launches.hpp against the optimizer and the average on the host.

#include "models/kernels/flat_launches.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "tests/cuda_emulation/cuda_runtime.h"
#include "train/optimizer/optimizer.hpp"

namespace tpudist {
namespace {

constexpr int kMembers = 4, kInactive = 2, kSteps = 3;
constexpr std::int64_t kExtra = 16, kShift = 48;  // after a gradient; between placed parameters

// Sizes that are no multiples of anything; parts of the norm that end within a block and at its
// end.
ParameterTable odd_table() {
  ParameterTable table;
  table.add("weight", {161, 203});
  table.add("mean", {37}, ParameterGroup::statistics);
  table.add("bias", {7}, ParameterGroup::biases);
  table.add("norm", {129}, ParameterGroup::norms);
  table.add("scale", {1}, ParameterGroup::statistics);
  table.add("output", {16'384}, ParameterGroup::output);
  return table;
}

// Of all sizes that float32 has, with those at which functions change.
std::vector<float> numbers(std::int64_t count, std::uint64_t key, double most) {
  CounterRng rng(mix_key({key}));
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double size = std::pow(10.0, rng.uniform(-42, most));
    values.push_back(rng.below(16) == 0 ? 0.0f : static_cast<float>(rng.normal() * size));
  }
  values[0] = std::numeric_limits<float>::denorm_min();
  values[1] = -0.0f;
  return values;
}

void expect_same_bits(std::span<const float> got, std::span<const float> expected,
                      const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << what << " at " << i << ": " << got[i] << " for " << expected[i];
  }
}

struct Kernels {
  Kernels(const ParameterTable& table, std::vector<float> parameters)
      : length(table.length()), flat(std::move(parameters)) {
    first.resize(flat.size());
    second.resize(flat.size());
    average.resize(flat.size());
    std::int32_t tensor = 0;
    for (std::size_t e = 0; e < table.entries().size(); ++e) {
      const ParameterEntry& entry = table.entries()[e];
      for (std::int64_t i = 0; i < entry.size(); i += 16)
        places.push_back(
            {static_cast<std::int32_t>(entry.group),
             static_cast<std::int32_t>(entry.offset + i + kShift * static_cast<std::int64_t>(e)),
             tensor});
      if (entry.group != ParameterGroup::statistics) ++tensor;
    }
    placed_length = length + kShift * std::ssize(table.entries());
    placed.resize(kMembers * placed_length);
  }

  std::vector<MemberTotals> totals(const std::vector<float>& gradients,
                                   std::span<const NormPart> parts) {
    const auto members = static_cast<std::size_t>(kMembers);
    std::vector<LaneSums> sums(members * parts.size() * kNormLanes);
    std::vector<MemberTotals> totals(members);
    launch_losses_and_norms(kMembers, length, parts.data(), std::ssize(parts), gradients.data(),
                            length + kExtra, flat.data(), sums.data(), totals.data(), nullptr);
    return totals;
  }
  void step(const std::vector<float>& gradients, const std::vector<StepCoefficients>& coefficients,
            TensorClip clip) {
    std::vector<LaneSums> sums(kMembers * clip.count * kNormLanes);
    std::vector<float> scales(kMembers * clip.tensors);
    clip.sums = sums.data();
    clip.scales = scales.data();
    const SteppedBuffers buffers{length,        flat.data(),   first.data(), second.data(),
                                 placed.data(), placed_length, places.data()};
    launch_optimizer_step(kMembers, buffers, gradients.data(), length + kExtra, coefficients.data(),
                          kParameterGroups, clip, nullptr);
  }
  // Where a member's entry lies among the placed parameters.
  std::span<const float> placed_entry(const ParameterTable& table, int member,
                                      std::size_t entry) const {
    const std::int64_t at = member * placed_length + table.entries()[entry].offset +
                            kShift * static_cast<std::int64_t>(entry);
    return std::span(placed).subspan(at, static_cast<std::size_t>(table.entries()[entry].size()));
  }

  std::int64_t length, placed_length = 0;
  std::vector<float> flat, first, second, average, placed;
  std::vector<FlatPlace> places;
};

OptimizerConfig config_of(const std::string& name, double clip_norm) {
  OptimizerConfig config;
  config.name = name;
  config.clip_norm = clip_norm;
  config.set_decay(ParameterGroup::weights, 0.01);
  config.set_decay(ParameterGroup::norms, 0.3);
  config.set_decay(ParameterGroup::output, 0.01);
  return config;
}

void compare_steps(const OptimizerConfig& config) {
  const ParameterTable table = odd_table();
  const std::int64_t length = table.length(), stride = length + kExtra;
  ThreadPool pool(1);
  FlatOptimizer host(config, table, kMembers), counted(config, table, kMembers);
  AverageConfig ema;
  ema.kind = AverageKind::ema;
  WeightAverage average(ema, length, kMembers), points(ema, length, kMembers);
  std::vector<float> flat = numbers(kMembers * length, 1, 3);
  Kernels kernels(table, flat);
  for (int step = 0; step < kSteps; ++step) {
    // Members by the sizes of their gradients; the inactive one has numbers that are none.
    std::vector<float> gradients;
    for (int member = 0; member < kMembers; ++member) {
      std::vector<float> row =
          numbers(stride, mix_key({2, std::uint64_t(step), std::uint64_t(member)}),
                  member == 0   ? 38
                  : member == 1 ? -30
                                : 1);
      if (member == kInactive) row[5] = std::numeric_limits<float>::quiet_NaN();
      if (member == kInactive && step == 1) row[5] = std::numeric_limits<float>::infinity();
      gradients.insert(gradients.end(), row.begin(), row.end());
    }
    const std::vector<double> norms = host.gradient_norms(gradients, stride, pool);
    const std::vector<MemberTotals> totals = kernels.totals(gradients, host.norm_parts());
    for (std::size_t m = 0; m < kMembers; ++m) {
      EXPECT_EQ(totals[m].loss, gradients[m * stride + length]);
      EXPECT_TRUE(totals[m].norm == norms[m] || (std::isnan(norms[m]) && step != 1)) << m;
    }
    std::vector<bool> active(kMembers, true);
    active[kInactive] = false;
    const double rate = step == 1 ? 0 : 1 + 0.5 * step;
    host.step(flat, gradients, stride, norms, active, rate, pool);
    average.add(flat, active, step + 1, kSteps, pool);
    kernels.step(gradients, counted.begin_step(norms, active, rate), counted.tensor_clip());
    const std::vector<float> shares = points.begin_point(active, step + 1, kSteps);
    launch_average_point(kMembers, length, shares.data(), kernels.flat.data(),
                         kernels.average.data(), nullptr);
    expect_same_bits(kernels.flat, flat, "parameters");
    expect_same_bits(kernels.first, host.first_moment(), "first moments");
    expect_same_bits(kernels.second, host.second_moment(), "second moments");
    expect_same_bits(kernels.average, average.values(), "averages");
  }
  EXPECT_NE(flat[100], kernels.average[100]);
  for (std::size_t e = 0; e < table.entries().size(); ++e) {
    const ParameterEntry& entry = table.entries()[e];
    for (int member = 0; member < kMembers; ++member) {
      const std::span<const float> placed = kernels.placed_entry(table, member, e);
      if (entry.group == ParameterGroup::statistics || member == kInactive) {
        for (const float value : placed) EXPECT_EQ(value, 0);  // nobody has written it
      } else {
        expect_same_bits(placed,
                         std::span(flat).subspan(member * length + entry.offset, placed.size()),
                         entry.name.c_str());
      }
    }
  }
}

// The lowest bit or the sign of one number, at the ends and within a part.
TEST(FlatSteps, TheHashChangesWithABitOfAGradientOrParameter) {
  const ParameterTable table = odd_table();
  const std::int64_t length = table.length();
  const FlatOptimizer host(config_of("adam", 0), table, kMembers);
  Kernels kernels(table, numbers(kMembers * length, 1, 3));
  std::vector<float> gradients = numbers(kMembers * (length + kExtra), 2, 3);
  const std::vector<MemberTotals> before = kernels.totals(gradients, host.norm_parts());
  for (const NormPart& part : host.norm_parts()) {
    for (const std::int64_t i : {part.begin, part.begin + 9, part.end - 1}) {
      for (const std::uint32_t bit : {1u, 1u << 31}) {
        for (float* changed : {&kernels.flat[length + i], &gradients[length + kExtra + i]}) {
          const float kept = *changed;
          *changed = std::bit_cast<float>(std::bit_cast<std::uint32_t>(kept) ^ bit);
          const std::vector<MemberTotals> after = kernels.totals(gradients, host.norm_parts());
          for (std::size_t m = 0; m < kMembers; ++m)
            EXPECT_EQ(after[m].bits == before[m].bits, m != 1) << i;
          *changed = kept;
        }
      }
    }
  }
}

TEST(FlatSteps, HaveTheBitsOfTheHost) {
  for (const auto order : {emulation::Order::forward, emulation::Order::backward}) {
    emulation::order = order;
    compare_steps(config_of("adamw", 0));
    compare_steps(config_of("adamw", 100));
    compare_steps(config_of("adam", 1e-3));
    OptimizerConfig by_tensor = config_of("adam", 0);
    by_tensor.clip_tensor_norm = 0.5;
    compare_steps(by_tensor);
    by_tensor.decay_clipped = true;
    compare_steps(by_tensor);
  }
  emulation::order = emulation::Order::forward;
}

}  // namespace
}  // namespace tpudist
