#include "models/network/executor.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/composed_network.hpp"
#include "models/plans/join_plans.hpp"

namespace tpudist {
namespace {

using Part = std::shared_ptr<const PreparedPlan>;

// If a loss ignores a shift only at some scores, the forward pass runs all rows. The backward pass
// can skip unneeded rows if it runs the needed rows forward again. That pays below this share of
// needed rows: a backward pass costs two forward passes, so 1 + 3 share < 3.
constexpr double kPayingShare = 0.6;

class PlacedTensor : public PlacedParameters {
 public:
  explicit PlacedTensor(at::Tensor rows) : rows(std::move(rows)) {}
  int members() const override { return static_cast<int>(rows.size(0)); }
  float* data() const override { return rows.mutable_data_ptr<float>(); }
  std::shared_ptr<const PlacedParameters> some(std::span<const int> members) const override {
    std::vector<at::Tensor> runs;
    for (std::size_t begin = 0, end; begin < members.size(); begin = end) {
      end = begin + 1;
      while (end < members.size() && members[end] == members[end - 1] + 1) ++end;
      runs.push_back(rows.narrow(0, members[begin], static_cast<std::int64_t>(end - begin)));
    }
    return std::make_shared<const PlacedTensor>(runs.size() == 1 ? runs[0] : at::cat(runs));
  }

  const at::Tensor rows;  // as ComposedNetwork::place returns them
};

class ComposedExecutor : public Executor {
 public:
  ComposedExecutor(const NetworkConfig& config, const FeatureSchema& schema, bool recompute,
                   ThreadPool& pool, const DeviceContext& context)
      : network_(config, schema, context), context_(context), recompute_(recompute), pool_(pool) {
    if (context.is_device())
      zeros_ = at::zeros({1, network_.parameters().length()},
                         at::TensorOptions(at::kFloat).device(context.device));
  }

  std::shared_ptr<const PreparedUnit> prepare(const UnitInput& input) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(context_.device);
    UnitInput kept = input;
    const auto unit = std::make_shared<const PreparedUnit>();
    kept.prepared = unit;
    if (context_.is_device() && input.use == UnitUse::gradients && !input.plan->units &&
        runs_again(*input.plan)) {
      if (const auto plan = needed_part(*input.plan, network_.plan_shape())) {
        const std::vector<Part> both =
            network_.prepare(input, std::vector{input.plan, plan}, at::kFloat, pool_);
        unit->whole([&] { return both[0]; });
        unit->needed([&] { return both[1]; });
        return unit;
      }
    }
    input.use == UnitUse::differences ? needed(kept) : whole(kept);
    return unit;
  }
  std::shared_ptr<const PlacedParameters> place(std::span<const float> flat) const override {
    if (!context_.is_device()) return nullptr;
    const c10::OptionalDeviceGuard guard(context_.device);
    return std::make_shared<const PlacedTensor>(network_.place(flat));
  }
  DeviceCopies* device() const override {
    return context_.is_device() ? &network_.copies() : nullptr;
  }

  bool joins_units() const override { return context_.is_device() && network_.joins_units(); }

  void gradient(const MemberRange& members, const std::vector<int>& leaves, const UnitInput& joined,
                const LossGradient& loss_gradient, const GradientRows& gradients) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(context_.device);
    const Part unit = whole(joined);
    const JoinedUnits& units = *joined.plan->units;
    ComposedPass pass(network_, call_of(placed(members), members, *unit, true, units.slots),
                      recompute_);
    UnitScores scores{members.count, units.configs->rows / units.blocks, {}, {}};
    scores.delta.resize(static_cast<std::size_t>(members.count * scores.configs));
    const at::Tensor all = pass.forward();
    write_scores(all, 0, scores);
    const ScoreGradient score_gradient = loss_gradient(scores);
    const HostPart values{score_gradient.values.data(), 0, scores.delta.size() * sizeof(double)};
    const at::Tensor d_scores =
        network_.copies().upload(std::span(&values, 1), values.bytes).view(at::kDouble);
    const std::int64_t count = members.count * units.slots;
    at::Tensor to = rows_of(gradients, 0, std::ssize(leaves));
    if (std::ssize(leaves) == count) {
      put_gradients(pass, *unit, d_scores.view(all.sizes()), to);
      return;
    }
    at::Tensor rows = at::empty({count, network_.parameters().length()}, zeros_.options());
    put_gradients(pass, *unit, d_scores.view(all.sizes()), rows);
    const HostPart kept{leaves.data(), 0, leaves.size() * sizeof(int)};
    const at::Tensor index =
        network_.copies().upload(std::span(&kept, 1), kept.bytes).view(at::kInt);
    at::index_select_out(to, rows, 0, index);
  }

  int members_together(const Plan&) const override {
    return context_.is_device() ? std::numeric_limits<int>::max() : 1;
  }

  UnitScores scores(const MemberRange& members, const UnitInput& input) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(context_.device);
    const at::NoGradGuard no_graph;
    const Part unit = whole(input);
    UnitScores scores = no_scores(members, input);
    if (context_.is_device()) {
      write_scores(network_.scores(call_of(placed(members), members, *unit, false)), 0, scores);
      return scores;
    }
    for (int m = 0; m < members.count; ++m)
      write_scores(network_.scores(call_of(members, m, *unit, false)), m, scores);
    return scores;
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const LossGradient& loss_gradient, const GradientRows& gradients,
                bool common) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(context_.device);
    const Part unit = common ? whole(input) : needed(input);
    const bool again = common && runs_again(*input.plan);
    if (context_.is_device()) {
      gradient_on_device(members, input, *unit, again, loss_gradient, gradients);
      return;
    }
    UnitScores scores = no_scores(members, input);
    std::vector<std::optional<ComposedPass>> passes;
    for (int m = 0; m < members.count; ++m) {
      passes.emplace_back(std::in_place, network_, call_of(members, m, *unit, true),
                          recompute_ || again);
      write_scores(passes.back()->forward(), m, scores);
    }
    const ScoreGradient score_gradient = loss_gradient(scores);
    for (int m = 0; m < members.count; ++m) {
      const auto at = static_cast<std::size_t>(m);
      const bool differences = again && score_gradient.is_translation_invariant(m);
      const Part part = differences ? needed(input) : unit;
      backward(*passes[at], *part, score_gradient, m, gradients.host[at]);
      passes[at].reset();
    }
  }

 private:
  // Whether the backward pass runs the needed rows again if the loss allows it. Independent of
  // train.recompute, which must not change a bit.
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
      const auto plan = network_.adds_up_rows() && !input.plan->units
                            ? needed_part(*input.plan, network_.plan_shape())
                            : nullptr;
      return plan ? network_.prepare(input, plan, at::kFloat, pool_) : whole(input);
    };
    return input.prepared ? input.prepared->needed(make) : make();
  }

  // The call of one member, on the CPU.
  NetworkCall call_of(const MemberRange& members, int m, const PreparedPlan& unit,
                      bool trained) const {
    const std::int64_t length = network_.parameters().length(), member = members.first + m;
    std::span<const std::uint64_t> keys = members.dropout_keys;
    if (!keys.empty()) keys = keys.subspan(static_cast<std::size_t>(member), 1);
    const float* const flat = members.flat.data() + member * length;
    if (reinterpret_cast<std::uintptr_t>(flat) % 64 == 0)
      return {unit, network_.views(flat, trained), keys};
    const std::span own(flat, static_cast<std::size_t>(length));
    return {unit, network_.weights_of(network_.place(own), trained), keys};
  }

  // The parameters of a call's members on the device.
  std::shared_ptr<const PlacedTensor> placed(const MemberRange& members) const {
    const at::Tensor all = members.placed ? static_cast<const PlacedTensor&>(*members.placed).rows
                                          : network_.place(members.flat);
    return std::make_shared<const PlacedTensor>(all.narrow(0, members.first, members.count));
  }
  // The call of all members, on the device.
  NetworkCall call_of(const std::shared_ptr<const PlacedTensor>& placed, const MemberRange& members,
                      const PreparedPlan& unit, bool trained, std::int64_t slots = 1) const {
    std::span<const std::uint64_t> keys = members.dropout_keys;
    if (!keys.empty())
      keys = keys.subspan(static_cast<std::size_t>(members.first),
                          static_cast<std::size_t>(members.count));
    return {unit, network_.weights_of(placed->rows, trained, slots), keys};
  }

  // Scores of members `first` and following.
  void write_scores(const at::Tensor& scores, int first, UnitScores& all) const {
    double* const to = all.delta.data() + first * all.configs;
    const at::Tensor values = scores.detach().contiguous();
    if (context_.is_device()) {
      network_.copies().download(values, to);
    } else {
      std::copy_n(values.const_data_ptr<double>(), values.numel(), to);
    }
  }

  // The backward pass of one member, on the CPU.
  void backward(ComposedPass& pass, const PreparedPlan& unit, const ScoreGradient& score_gradient,
                int member, std::span<float> gradient) const {
    const std::int64_t configs = unit.plan->configs;
    const at::Tensor d_scores =
        at::from_blob(const_cast<double*>(score_gradient.values.data()) + member * configs,
                      {1, configs}, at::kDouble);
    const at::Tensor flat =
        at::from_blob(gradient.data(), {network_.parameters().length()}, at::kFloat).zero_();
    pass.backward(unit, d_scores, [&](const ParameterEntry& entry, const at::Tensor& given) {
      if (given.defined()) flat.narrow(0, entry.offset, entry.size()).copy_(given.reshape({-1}));
    });
  }

  void gradient_on_device(const MemberRange& members, const UnitInput& input,
                          const PreparedPlan& unit, bool again, const LossGradient& loss_gradient,
                          const GradientRows& gradients) const {
    const auto placed = this->placed(members);
    const NetworkCall call = call_of(placed, members, unit, true);
    ComposedPass pass(network_, call, recompute_ || again);
    UnitScores scores = no_scores(members, input);
    write_scores(pass.forward(), 0, scores);
    const ScoreGradient score_gradient = loss_gradient(scores);
    std::vector<int> kinds[2];  // whether only differences between scores matter
    for (int m = 0; m < members.count; ++m)
      kinds[again && score_gradient.is_translation_invariant(m)].push_back(m);
    for (const bool differences : {false, true}) {
      const std::vector<int>& some = kinds[differences];
      if (some.empty()) continue;
      const Part part = differences ? needed(input) : nullptr;
      const PreparedPlan& rows = part ? *part : unit;
      if (static_cast<int>(some.size()) == members.count) {
        backward_on_device(pass, rows, score_gradient, some, gradients);
        continue;
      }
      // The kind of one member's loss must not change the bits of another member.
      std::vector<std::uint64_t> keys;
      for (const int m : some) {
        if (!call.dropout_keys.empty())
          keys.push_back(call.dropout_keys[static_cast<std::size_t>(m)]);
      }
      const auto own = std::static_pointer_cast<const PlacedTensor>(placed->some(some));
      ComposedPass apart(network_, {unit, network_.weights_of(own->rows, true), keys}, true);
      apart.forward();
      backward_on_device(apart, rows, score_gradient, some, gradients);
    }
  }

  // The backward pass of a pass's members, `members` of the call. One operation joins the rows.
  void backward_on_device(ComposedPass& pass, const PreparedPlan& unit,
                          const ScoreGradient& score_gradient, const std::vector<int>& members,
                          const GradientRows& gradients) const {
    const auto configs = static_cast<std::size_t>(unit.plan->configs);
    const auto count = static_cast<std::int64_t>(members.size());
    std::vector<HostPart> values;
    for (std::size_t i = 0; i < members.size(); ++i)
      values.push_back(
          {score_gradient.values.data() + static_cast<std::size_t>(members[i]) * configs,
           i * configs * sizeof(double), configs * sizeof(double)});
    const at::Tensor d_scores = network_.copies()
                                    .upload(values, members.size() * configs * sizeof(double))
                                    .view(at::kDouble)
                                    .view({count, unit.plan->configs});
    if (gradients.device && members.back() - members.front() + 1 == count) {
      at::Tensor to = rows_of(gradients, members.front(), count);
      put_gradients(pass, unit, d_scores, to);
      return;
    }
    at::Tensor all = at::empty({count, network_.parameters().length()}, zeros_.options());
    put_gradients(pass, unit, d_scores, all);
    for (std::int64_t i = 0; i < count; ++i) {
      const int member = members[static_cast<std::size_t>(i)];
      if (gradients.device) {
        rows_of(gradients, member, 1).copy_(all.narrow(0, i, 1));
      } else {
        network_.copies().download(all[i], gradients.host[static_cast<std::size_t>(member)].data());
      }
    }
  }

  // `count` rows of the device from row `first` on, [count, P].
  at::Tensor rows_of(const GradientRows& gradients, std::int64_t first, std::int64_t count) const {
    return at::from_blob(gradients.device + first * gradients.stride,
                         {count, network_.parameters().length()}, {gradients.stride, 1},
                         zeros_.options());
  }

  // Writes the gradients of members or leaves into `to`, [count, P].
  void put_gradients(ComposedPass& pass, const PreparedPlan& unit, const at::Tensor& d_scores,
                     at::Tensor& to) const {
    const std::int64_t count = to.size(0);
    std::map<std::int64_t, at::Tensor> parts;  // [count, ...] by their offset
    pass.backward(unit, d_scores, [&](const ParameterEntry& entry, const at::Tensor& given) {
      if (given.defined()) parts[entry.offset] = given.reshape({count, entry.size()});
    });
    std::vector<at::Tensor> row;
    std::int64_t end = 0;
    const auto fill = [&](std::int64_t begin) {
      if (begin > end) row.push_back(zeros_.narrow(1, 0, begin - end).expand({count, -1}));
    };
    for (const auto& [offset, given] : parts) {
      fill(offset);
      row.push_back(given);
      end = offset + given.size(1);
    }
    fill(network_.parameters().length());
    at::cat_out(to, row, 1);
  }

  ComposedNetwork network_;
  DeviceContext context_;
  bool recompute_;
  ThreadPool& pool_;
  at::Tensor zeros_;  // [1, P] on a device
};

}  // namespace

std::unique_ptr<Executor> make_composed_executor(const NetworkConfig& config,
                                                 const FeatureSchema& schema, bool recompute,
                                                 ThreadPool& pool, const DeviceContext& context) {
  return std::make_unique<ComposedExecutor>(config, schema, recompute, pool, context);
}

void require_precision(Precision precision, int major, int minor) {
  if (precision == Precision::fp32 || major >= 8) return;
  throw ConfigError(
      fmt::format("precision: {} needs a GPU of compute capability 8.0, and this one has {}.{}: "
                  "set precision to fp32",
                  precision_name(precision), major, minor));
}

void hold_to_fp32(Precision precision) {
  const char* const asked = std::getenv("NVIDIA_TF32_OVERRIDE");
  if (asked && *asked && (precision == Precision::tf32 || std::string_view(asked) != "0")) {
    throw ConfigError(fmt::format(
        "NVIDIA_TF32_OVERRIDE={} decides in place of `precision: {}` whether CUDA's libraries "
        "round the operands of products to TF32, so that all numbers change: unset it",
        asked, precision_name(precision)));
  }
  at::globalContext().setAllowTF32CuBLAS(false);
}

ParameterTable composed_parameters(const NetworkConfig& config, const FeatureSchema& schema) {
  return ComposedNetwork(config, schema).parameters();
}

}  // namespace tpudist
