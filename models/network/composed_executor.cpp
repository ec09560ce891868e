#include "models/network/composed_executor.hpp"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "models/kernels/threads.hpp"
#include "models/network/composed_network.hpp"
#include "models/network/composed_pass.hpp"
#include "models/operators/device_backend.hpp"
#include "models/plans/needed_part.hpp"

#ifdef TPUDIST_WITH_CUDA_KERNELS
#include <c10/cuda/CUDAException.h>
#endif

namespace tpudist {
namespace {

using Part = std::shared_ptr<const PreparedPlan>;

// Where a loss ignores a shift at some scores only, the forward pass runs all rows, and the backward
// pass can leave out what is not needed if it runs the needed rows forward again. That pays for a
// share of the rows below this one: with a backward pass of two forward ones, 1 + 3 share < 3.
constexpr double kPayingShare = 0.6;

class ComposedExecutor : public Executor {
 public:
  ComposedExecutor(const NetworkConfig& config, std::int64_t config_features, bool recompute,
                   ThreadPool& pool, const DeviceContext& place)
      : network_(config, config_features, place),
        place_(place),
        recompute_(recompute),
        pool_(pool) {}

  std::shared_ptr<const PreparedUnit> prepare(const UnitInput& input) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(place_.device);
    UnitInput kept = input;
    kept.prepared = std::make_shared<const PreparedUnit>();
    input.of_differences ? needed(kept) : whole(kept);
    return kept.prepared;
  }
  int members_together(const Plan&) const override {
    return place_.is_device() ? std::numeric_limits<int>::max() : 1;
  }

  UnitScores scores(const MemberRange& members, const UnitInput& input) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(place_.device);
    const at::NoGradGuard no_graph;
    const Part unit = whole(input);
    UnitScores scores = no_scores(members, input);
    for (const MemberGroup& some : passes_of(members))
      write_scores(network_.scores(call_of(members, some, *unit, false)), some, scores);
    return scores;
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const LossGradient& loss_gradient, std::span<const std::span<float>> gradients,
                bool common) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(place_.device);
    const Part unit = common ? whole(input) : needed(input);
    const bool again = common && runs_again(*input.plan);
    UnitScores scores = no_scores(members, input);
    std::vector<std::optional<ComposedPass>> passes;
    const std::vector<MemberGroup> groups = passes_of(members);
    for (const MemberGroup& some : groups) {
      passes.emplace_back(std::in_place, network_, call_of(members, some, *unit, true),
                          recompute_ || again);
      write_scores(passes.back()->forward(), some, scores);
    }
    const ScoreGradient score_gradient = loss_gradient(scores);
    check_score_gradient(scores, score_gradient);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const bool differences = again && ignores_shift(score_gradient, groups[i]);
      backward(*passes[i], differences ? *needed(input) : *unit, score_gradient, groups[i],
               gradients);
      passes[i].reset();
    }
  }

 private:
  // Members of a call that one pass computes together, counted from the call's first.
  struct MemberGroup {
    int first = 0, count = 0;
  };
  std::vector<MemberGroup> passes_of(const MemberRange& members) const {
    if (place_.is_device() && members.count > 0) return {{0, members.count}};
    std::vector<MemberGroup> each;
    for (int m = 0; m < members.count; ++m) each.push_back({m, 1});
    return each;
  }

  // Whether the backward pass runs the needed rows again where the loss lets it. The same with and
  // without train.recompute, which does not change a bit.
  bool runs_again(const Plan& plan) const {
    return network_.adds_up_rows() && needed_share(plan, network_.plan_shape()) < kPayingShare;
  }

  static UnitScores no_scores(const MemberRange& members, const UnitInput& input) {
    const std::int64_t configs = input.plan->configs;
    const auto slates = static_cast<std::size_t>(input.plan->readout.common.forward.rows());
    const auto count = static_cast<std::size_t>(members.count);
    return {members.count, configs, std::vector<double>(count * static_cast<std::size_t>(configs)),
            std::vector<double>(count * slates)};
  }

  // The unit on its plan.
  Part whole(const UnitInput& input) const {
    const auto make = [&] { return network_.prepare(input, input.plan, at::kFloat, pool_); };
    return input.prepared ? input.prepared->whole(make) : make();
  }
  // The unit on the rows that differences between scores depend on.
  Part needed(const UnitInput& input) const {
    const auto make = [&] {
      const auto plan =
          network_.adds_up_rows() ? needed_part(*input.plan, network_.plan_shape()) : nullptr;
      return plan ? network_.prepare(input, plan, at::kFloat, pool_) : whole(input);
    };
    return input.prepared ? input.prepared->needed(make) : make();
  }

  NetworkCall call_of(const MemberRange& members, const MemberGroup& some, const PreparedPlan& unit,
                      bool trained) const {
    const std::int64_t length = network_.parameters().length(), first = members.first + some.first;
    std::span<const std::uint64_t> keys = members.dropout_keys;
    if (!keys.empty())
      keys = keys.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(some.count));
    const float* const flat = members.flat.data() + first * length;
    const bool aligned = reinterpret_cast<std::uintptr_t>(flat) % 64 == 0;
    if (!place_.is_device() && aligned) return {unit, network_.views(flat, trained), keys};
    const at::Tensor host =
        at::from_blob(const_cast<float*>(flat), {some.count, length}, at::kFloat);
    return {unit, network_.weights_of(host.to(place_.device), trained), keys};
  }

  static void write_scores(const at::Tensor& scores, const MemberGroup& some, UnitScores& all) {
    const at::Tensor values = scores.detach().contiguous().cpu();
    std::copy_n(values.const_data_ptr<double>(), values.numel(),
                all.delta.begin() + some.first * all.configs);
  }

  static bool ignores_shift(const ScoreGradient& gradient, const MemberGroup& some) {
    bool all = true;
    for (int m = some.first; m < some.first + some.count; ++m)
      all = all && gradient.is_translation_invariant(m);
    return all;
  }

  // Writes gradients[some.first] and following; on a device they come back in one copy.
  void backward(ComposedPass& pass, const PreparedPlan& unit, const ScoreGradient& score_gradient,
                const MemberGroup& some, std::span<const std::span<float>> gradients) const {
    const std::int64_t configs = unit.plan->configs, length = network_.parameters().length();
    const at::Tensor host =
        at::from_blob(const_cast<double*>(score_gradient.values.data()) + some.first * configs,
                      {some.count, configs}, at::kDouble);
    const at::Tensor d_scores = host.to(place_.device);
    const bool on_device = place_.is_device();
    const at::Tensor flat =
        on_device ? at::zeros({some.count, length}, d_scores.options().dtype(at::kFloat))
                  : at::from_blob(gradients[some.first].data(), {1, length}, at::kFloat).zero_();
    pass.backward(unit, d_scores, [&](const ParameterEntry& entry, const at::Tensor& given) {
      if (given.defined())
        flat.narrow(1, entry.offset, entry.size()).copy_(given.reshape({some.count, entry.size()}));
    });
    if (!on_device) return;
    const at::Tensor made = flat.cpu();
    for (int m = 0; m < some.count; ++m) {
      std::copy_n(made.const_data_ptr<float>() + m * length, length,
                  gradients[static_cast<std::size_t>(some.first + m)].begin());
    }
  }

  ComposedNetwork network_;
  DeviceContext place_;
  bool recompute_;
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Executor> make_composed_executor(const NetworkConfig& config,
                                                 std::int64_t config_features, bool recompute,
                                                 ThreadPool& pool, const DeviceContext& place) {
  return std::make_unique<ComposedExecutor>(config, config_features, recompute, pool, place);
}

void require_precision(Precision precision, int major, int minor) {
  if (precision == Precision::fp32 || major >= 8) return;
  throw ConfigError(
      fmt::format("precision: bf16 needs a GPU of compute capability 8.0, and this one has {}.{}: "
                  "set precision to fp32",
                  major, minor));
}

void hold_to_fp32() {
  const char* const asked = std::getenv("NVIDIA_TF32_OVERRIDE");
  if (asked && *asked && std::string_view(asked) != "0") {
    throw ConfigError(fmt::format(
        "NVIDIA_TF32_OVERRIDE={} lets CUDA's libraries round the operands of products to TF32, so "
        "that all numbers change: unset it",
        asked));
  }
  at::globalContext().setAllowTF32CuBLAS(false);
}

DeviceContext place_on(int device_index, [[maybe_unused]] Precision precision) {
  if (device_index < 0) return {};
#ifdef TPUDIST_WITH_CUDA_KERNELS
  hold_to_fp32();
  if (precision != Precision::fp32) {
    int major = 0, minor = 0;
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_index));
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device_index));
    require_precision(precision, major, minor);
  }
  // A thread that waits for the device sleeps: its core plans the next steps.
  C10_CUDA_CHECK(
      cudaInitDevice(device_index, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
  return {at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device_index)), make_device_backend};
#else
  throw ConfigError(
      "a GPU needs the project's CUDA kernels, and this program was built without nvcc: set "
      "dist.device to cpu");
#endif
}

ParameterTable composed_parameters(const NetworkConfig& config, std::int64_t config_features) {
  return ComposedNetwork(config, config_features).parameters();
}

}  // namespace tpudist
