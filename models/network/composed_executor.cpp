#include "models/network/executor.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "models/inputs/unit_input.hpp"
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

  void gradient(const MemberRange& members, const std::vector<int>& leaves, const UnitInput& joined,
                const LossGradient& loss_gradient, const GradientRows& gradients) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(context_.device);
    gradient_on_device(members, leaves, *whole(joined), loss_gradient, gradients);
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
      UnitScores all = joined_scores(members, *unit);
      write_scores(network_.scores(call_of(placed(members), members, *unit, false)), 0, all);
      copy_columns(all.delta, scores.delta, members.count);
      return scores;
    }
    for (int m = 0; m < members.count; ++m) {
      NetworkCall call = call_of(members, m, *unit, false);
      call.kept = &input.kept;
      call.member = members.first + m;
      write_scores(network_.scores(call), m, scores);
    }
    return scores;
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const LossGradient& loss_gradient, const GradientRows& gradients,
                bool common) const override {
    use_one_thread_per_worker();
    const c10::OptionalDeviceGuard guard(context_.device);
    const Part unit = common ? whole(input) : needed(input);
    if (context_.is_device()) {
      gradient_of_unit(members, input, *unit, loss_gradient, gradients);
      return;
    }
    const bool again = common && runs_again(*input.plan);
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

  // The unit on a plan of its own. A device computes joined units, if only one.
  Part prepared(UnitInput input, std::shared_ptr<const Plan> plan) const {
    input.plan = std::move(plan);
    if (context_.is_device() && !input.plan->units)
      input = join_units({{&input}}, network_.schema().config_features);
    return network_.prepare(input, at::kFloat, pool_);
  }
  // The unit on its plan.
  Part whole(const UnitInput& input) const {
    const auto make = [&] { return prepared(input, input.plan); };
    return input.prepared ? input.prepared->whole(make) : make();
  }
  // The unit on the rows that differences between scores depend on.
  Part needed(const UnitInput& input) const {
    const auto make = [&] {
      const auto plan = network_.adds_up_rows() && !input.plan->units
                            ? needed_part(*input.plan, network_.plan_shape())
                            : nullptr;
      return plan ? prepared(input, plan) : whole(input);
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

  // The scores of a joined plan, for one member or all of its blocks.
  static UnitScores joined_scores(const MemberRange& members, const PreparedPlan& unit) {
    const std::int64_t configs = unit.plan->configs / unit.plan->units->blocks;
    return {members.count,
            configs,
            std::vector<double>(static_cast<std::size_t>(members.count * configs)),
            {}};
  }
  // Copies the first columns of `count` rows; `to` and `from` may have a different number of them.
  static void copy_columns(const std::vector<double>& from, std::vector<double>& to, int count) {
    const std::size_t rows = static_cast<std::size_t>(count), in = from.size() / rows,
                      out = to.size() / rows;
    for (std::size_t row = 0; row < rows; ++row)
      std::copy_n(from.begin() + row * in, std::min(in, out), to.begin() + row * out);
  }

  // Forward and backward pass of joined units, and the gradients of `leaves`.
  void gradient_on_device(const MemberRange& members, const std::vector<int>& leaves,
                          const PreparedPlan& unit, const LossGradient& loss_gradient,
                          const GradientRows& gradients) const {
    const std::int64_t slots = unit.plan->units->slots, count = members.count * slots;
    ComposedPass pass(network_, call_of(placed(members), members, unit, true, slots), recompute_);
    UnitScores scores = joined_scores(members, unit);
    const at::Tensor all = pass.forward();
    write_scores(all, 0, scores);
    const ScoreGradient score_gradient = loss_gradient(scores);
    const HostPart values{score_gradient.values.data(), 0, scores.delta.size() * sizeof(double)};
    const at::Tensor d_scores = network_.copies()
                                    .upload(std::span(&values, 1), values.bytes)
                                    .view(at::kDouble)
                                    .view(all.sizes());
    at::Tensor to = rows_of(gradients, 0, std::ssize(leaves));
    if (std::ssize(leaves) == count) return put_gradients(pass, unit, d_scores, to);
    at::Tensor rows = at::empty({count, network_.parameters().length()}, zeros_.options());
    put_gradients(pass, unit, d_scores, rows);
    const HostPart kept{leaves.data(), 0, leaves.size() * sizeof(int)};
    const at::Tensor index =
        network_.copies().upload(std::span(&kept, 1), kept.bytes).view(at::kInt);
    at::index_select_out(to, rows, 0, index);
  }

  // The same for all members of one unit, whose scores are the first columns of the joined plan.
  void gradient_of_unit(const MemberRange& members, const UnitInput& input,
                        const PreparedPlan& unit, const LossGradient& loss_gradient,
                        const GradientRows& gradients) const {
    const auto of_unit = [&](const UnitScores& all) {
      UnitScores scores = no_scores(members, input);
      copy_columns(all.delta, scores.delta, members.count);
      ScoreGradient gradient{std::vector<double>(all.delta.size()), {}};
      copy_columns(loss_gradient(scores).values, gradient.values, members.count);
      return gradient;
    };
    std::vector<int> leaves(static_cast<std::size_t>(members.count));
    std::iota(leaves.begin(), leaves.end(), 0);
    if (gradients.device) return gradient_on_device(members, leaves, unit, of_unit, gradients);
    const at::Tensor rows =
        at::empty({members.count, network_.parameters().length()}, zeros_.options());
    gradient_on_device(members, leaves, unit, of_unit,
                       {rows.mutable_data_ptr<float>(), rows.size(1)});
    for (int m = 0; m < members.count; ++m)
      network_.copies().download(rows[m], gradients.host[static_cast<std::size_t>(m)].data());
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
