#include "models/executors/composed_executor.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <vector>

#include "models/kernels/tensor_memory.hpp"
#include "models/kernels/threads.hpp"
#include "models/network/composed_network.hpp"

namespace tpudist {
namespace {

class ComposedExecutor : public Executor {
 public:
  ComposedExecutor(const NetworkConfig& config, std::int64_t config_features, ThreadPool& pool)
      : network_(config, config_features), pool_(pool) {
    keep_tensor_memory();
  }

  std::shared_ptr<const PreparedUnit> prepare(const UnitInput& input) const override {
    use_one_thread_per_worker();
    return network_.prepare(input, at::kFloat);
  }
  int members_together(const Plan&) const override { return 1; }

  UnitScores scores(const MemberRange& members, const UnitInput& input) const override {
    use_one_thread_per_worker();
    const at::NoGradGuard no_graph;
    const auto unit = prepared(input);
    UnitScores scores = no_scores(members, input);
    for (int m = 0; m < members.count; ++m)
      write_scores(run(members, m, input, *unit, false).scores, m, scores);
    return scores;
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const LossGradient& loss_gradient, std::span<const std::span<float>> gradients,
                bool) const override {
    use_one_thread_per_worker();
    const at::AutoGradMode with_graph(true);
    const auto unit = prepared(input);
    UnitScores scores = no_scores(members, input);
    std::vector<Run> runs;
    for (int m = 0; m < members.count; ++m) {
      runs.push_back(run(members, m, input, *unit, true));
      write_scores(runs.back().scores, m, scores);
    }
    const ScoreGradient score_gradient = loss_gradient(scores);
    check_score_gradient(scores, score_gradient);
    for (int m = 0; m < members.count; ++m) {
      backward(runs[m], score_gradient, m, gradients[m]);
      runs[m] = {};
    }
  }

 private:
  // One member's forward pass.
  struct Run {
    LayerWeights weights;
    at::Tensor scores;  // [configurations, 1]
  };

  static UnitScores no_scores(const MemberRange& members, const UnitInput& input) {
    const std::int64_t configs = input.plan->configs;
    const auto slates = static_cast<std::size_t>(input.plan->readout.common.forward.rows());
    const auto count = static_cast<std::size_t>(members.count);
    return {members.count, configs, std::vector<double>(count * static_cast<std::size_t>(configs)),
            std::vector<double>(count * slates)};
  }

  std::shared_ptr<const PreparedUnit> prepared(const UnitInput& input) const {
    return input.prepared ? input.prepared : network_.prepare(input, at::kFloat);
  }

  Run run(const MemberRange& members, int m, const UnitInput& input, const PreparedUnit& unit,
          bool trained) const {
    const std::int64_t length = network_.parameters().length();
    Run run{network_.views(members.flat.data() + (members.first + m) * length, trained), {}};
    std::span<const std::uint64_t> keys = members.dropout_keys;
    if (!keys.empty()) keys = keys.subspan(static_cast<std::size_t>(members.first + m), 1);
    run.scores = network_.scores(input, unit, run.weights, pool_, keys);
    return run;
  }

  static void write_scores(const at::Tensor& scores, int m, UnitScores& all) {
    const at::Tensor values = scores.detach().contiguous();
    std::copy_n(values.const_data_ptr<double>(), all.configs, all.delta.begin() + m * all.configs);
  }

  void backward(const Run& run, const ScoreGradient& score_gradient, int m,
                std::span<float> gradient) const {
    const std::int64_t configs = run.scores.size(0);
    const at::Tensor d_scores = at::from_blob(
        const_cast<double*>(score_gradient.values.data()) + m * configs, {configs, 1}, at::kDouble);
    std::vector<const ParameterEntry*> entries;
    std::vector<at::Tensor> leaves;
    for (const ParameterEntry& entry : network_.parameters().entries()) {
      if (entry.group == ParameterGroup::statistics) continue;
      entries.push_back(&entry);
      leaves.push_back(run.weights[entry.name]);
    }
    const auto parts = torch::autograd::grad({run.scores}, leaves, {d_scores}, std::nullopt, false,
                                             /*allow_unused=*/true);
    std::ranges::fill(gradient, 0.0f);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].defined()) continue;
      const at::Tensor part = parts[i].contiguous();
      std::copy_n(part.const_data_ptr<float>(), entries[i]->size(),
                  gradient.begin() + entries[i]->offset);
    }
  }

  ComposedNetwork network_;
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Executor> make_composed_executor(const NetworkConfig& config,
                                                 std::int64_t config_features, ThreadPool& pool) {
  return std::make_unique<ComposedExecutor>(config, config_features, pool);
}

ParameterTable composed_parameters(const NetworkConfig& config, std::int64_t config_features) {
  return ComposedNetwork(config, config_features).parameters();
}

}  // namespace tpudist
