#include "models/executors/aten_executor.hpp"

#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "models/executors/aten_call.hpp"
#include "models/executors/aten_pass.hpp"
#include "models/executors/aten_replay.hpp"
#include "models/executors/aten_unit.hpp"

namespace tpudist {
namespace {

// Each keeps all that its passes make on the device.
constexpr std::size_t kKeptCalls = 8;

template <typename T>
std::span<const T> row_of(const at::Tensor& matrix, int row) {
  const std::int64_t width = matrix.size(1);
  return {matrix.const_data_ptr<T>() + row * width, static_cast<std::size_t>(width)};
}

class AtenExecutor : public Executor {
 public:
  AtenExecutor(const NetworkLayout& net, double output_scale, int device_index, bool replay)
      : net_(net),
        output_scale_(output_scale),
        device_(device_index < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, device_index)),
        pass_(net, device_),
        calls_(device_, replay ? kKeptCalls : 0) {}

  std::shared_ptr<const DeviceGraph> upload(const GraphInput& graph) const override {
    const c10::InferenceMode no_autograd;
    return std::make_shared<DeviceGraph>(to_device(graph, device_));
  }

  // With the device set: page-locked memory belongs to a device's context.
  std::shared_ptr<const StagedUnit> stage(const UnitInput& input) const override {
    const c10::OptionalDeviceGuard guard(device_);
    return std::make_shared<StagedUnit>(stage_unit(input, net_.config_features, device_));
  }

  UnitScores scores(const MemberRange& members, const UnitInput& input) const override {
    const c10::InferenceMode no_autograd;
    const c10::OptionalDeviceGuard guard(device_);
    const auto staged = staged_of(input);
    const auto call = calls_.take(pass_, input, *staged, members.count, false);
    call->load(*staged, members);
    call->forward();
    return read_out(*input.plan, call->values());
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const LossGradient& loss_gradient,
                std::span<const std::span<float>> gradients, bool common) const override {
    const c10::InferenceMode no_autograd;
    const c10::OptionalDeviceGuard guard(device_);
    const auto staged = staged_of(input);
    const auto call = calls_.take(pass_, input, *staged, members.count, true);
    call->load(*staged, members);
    call->forward();
    const UnitScores scores = read_out(*input.plan, call->values());
    const ScoreGradient score_gradient = loss_gradient(scores);
    check_score_gradient(scores, score_gradient);
    std::vector<bool> needed;
    for (int m = 0; m < members.count; ++m)
      needed.push_back(!common || score_gradient.is_translation_invariant(m));
    call->load_row_gradient(spread(*input.plan, score_gradient, needed));
    call->backward(needed);
    const at::Tensor flat = call->gradient();
    for (int m = 0; m < members.count; ++m)
      std::ranges::copy(row_of<float>(flat, m), gradients[m].begin());
  }

 private:
  std::shared_ptr<const StagedUnit> staged_of(const UnitInput& input) const {
    return input.staged ? input.staged : stage(input);
  }

  // The scores of `values` [members, rows].
  UnitScores read_out(const Plan& plan, const at::Tensor& values) const;
  // The transpose: d loss / d value [members, rows]; 0 for rows that are not needed where only
  // `needed` ones count.
  at::Tensor spread(const Plan& plan, const ScoreGradient& gradient,
                    const std::vector<bool>& needed) const;

  const NetworkLayout& net_;
  const double output_scale_;
  const at::Device device_;
  const AtenPass pass_;
  mutable CallCache calls_;
};

UnitScores AtenExecutor::read_out(const Plan& plan, const at::Tensor& values) const {
  const std::int64_t slates = plan.readout.common.forward.rows();
  UnitScores scores;
  scores.members = static_cast<int>(values.size(0));
  scores.configs = plan.configs;
  scores.delta.resize(scores.members * plan.configs);
  scores.common.resize(scores.members * slates);
  for (int m = 0; m < scores.members; ++m) {
    read_out_scores(plan.readout, row_of<double>(values, m), output_scale_,
                    std::span(scores.delta).subspan(m * plan.configs, plan.configs),
                    std::span(scores.common).subspan(m * slates, slates));
  }
  return scores;
}

at::Tensor AtenExecutor::spread(const Plan& plan, const ScoreGradient& gradient,
                                const std::vector<bool>& needed) const {
  const auto members = static_cast<std::int64_t>(needed.size()),
             rows = plan.rows(net_.layers.size());
  const at::Tensor spread = at::zeros({members, rows}, at::kFloat);
  for (std::int64_t m = 0; m < members; ++m) {
    const auto own = std::span(gradient.values).subspan(m * plan.configs, plan.configs);
    const std::int64_t count = needed[m] ? plan.needed_rows(net_.layers.size()) : rows;
    spread_to_rows(plan.readout, spread_to_cells(plan.readout, own, output_scale_), 0,
                   {spread.mutable_data_ptr<float>() + m * rows, static_cast<std::size_t>(count)});
  }
  return spread;
}

}  // namespace

std::unique_ptr<Executor> make_aten_executor(const NetworkLayout& layout, double output_scale,
                                             int device_index, bool replay) {
  return std::make_unique<AtenExecutor>(layout, output_scale, device_index, replay);
}

}  // namespace tpudist
