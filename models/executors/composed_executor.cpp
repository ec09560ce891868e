#include "models/executors/composed_executor.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "models/kernels/tensor_memory.hpp"
#include "models/kernels/threads.hpp"
#include "models/network/composed_network.hpp"
#include "models/network/composed_pass.hpp"
#include "models/plans/needed_part.hpp"

namespace tpudist {
namespace {

using Part = std::shared_ptr<const UnitPart>;

// Where a loss ignores a shift at some scores only, the forward pass runs all rows, and the backward
// pass can leave out what is not needed if it runs the needed rows forward again. That pays for a
// share of the rows below this one: with a backward pass of two forward ones, 1 + 3 share < 3.
constexpr double kPayingShare = 0.6;

class ComposedExecutor : public Executor {
 public:
  ComposedExecutor(const NetworkConfig& config, std::int64_t config_features, bool recompute,
                   ThreadPool& pool)
      : network_(config, config_features), recompute_(recompute), pool_(pool) {
    keep_tensor_memory();
  }

  std::shared_ptr<const PreparedUnit> prepare(const UnitInput& input) const override {
    use_one_thread_per_worker();
    UnitInput kept = input;
    kept.prepared = std::make_shared<const PreparedUnit>();
    input.of_differences ? needed(kept) : whole(kept);
    return kept.prepared;
  }
  int members_together(const Plan&) const override { return 1; }

  UnitScores scores(const MemberRange& members, const UnitInput& input) const override {
    use_one_thread_per_worker();
    const at::NoGradGuard no_graph;
    const Part unit = whole(input);
    UnitScores scores = no_scores(members, input);
    for (int m = 0; m < members.count; ++m)
      write_scores(network_.scores(call_of(members, m, *unit, false)), m, scores);
    return scores;
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const LossGradient& loss_gradient, std::span<const std::span<float>> gradients,
                bool common) const override {
    use_one_thread_per_worker();
    const Part unit = common ? whole(input) : needed(input);
    const bool again = common && runs_again(*input.plan);
    UnitScores scores = no_scores(members, input);
    std::vector<std::optional<ComposedPass>> passes;
    for (int m = 0; m < members.count; ++m) {
      passes.emplace_back(std::in_place, network_, call_of(members, m, *unit, true),
                          recompute_ || again);
      write_scores(passes.back()->forward(), m, scores);
    }
    const ScoreGradient score_gradient = loss_gradient(scores);
    check_score_gradient(scores, score_gradient);
    for (int m = 0; m < members.count; ++m) {
      const bool differences = again && score_gradient.is_translation_invariant(m);
      backward(*passes[m], differences ? *needed(input) : *unit, score_gradient, m, gradients[m]);
      passes[m].reset();
    }
  }

 private:
  // Whether the backward pass runs the needed rows again where the loss lets it. The same with and
  // without train.recompute, which does not change a bit.
  bool runs_again(const Plan& plan) const {
    return network_.adds_up_rows() && needed_share(plan) < kPayingShare;
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
    const auto make = [&] { return network_.prepare(input, input.plan, at::kFloat); };
    return input.prepared ? input.prepared->whole(make) : make();
  }
  // The unit on the rows that differences between scores depend on.
  Part needed(const UnitInput& input) const {
    const auto make = [&] {
      const auto plan = network_.adds_up_rows() ? needed_part(*input.plan) : nullptr;
      return plan ? network_.prepare(input, plan, at::kFloat) : whole(input);
    };
    return input.prepared ? input.prepared->needed(make) : make();
  }

  NetworkCall call_of(const MemberRange& members, int m, const UnitPart& unit, bool trained) const {
    const std::int64_t length = network_.parameters().length();
    std::span<const std::uint64_t> keys = members.dropout_keys;
    if (!keys.empty()) keys = keys.subspan(static_cast<std::size_t>(members.first + m), 1);
    return {unit, network_.views(members.flat.data() + (members.first + m) * length, trained),
            pool_, keys};
  }

  static void write_scores(const at::Tensor& scores, int m, UnitScores& all) {
    const at::Tensor values = scores.detach().contiguous();
    std::copy_n(values.const_data_ptr<double>(), all.configs, all.delta.begin() + m * all.configs);
  }

  static void backward(ComposedPass& pass, const UnitPart& unit,
                       const ScoreGradient& score_gradient, int m, std::span<float> gradient) {
    const std::int64_t configs = unit.plan->configs;
    const at::Tensor d_scores = at::from_blob(
        const_cast<double*>(score_gradient.values.data()) + m * configs, {configs, 1}, at::kDouble);
    std::ranges::fill(gradient, 0.0f);
    pass.backward(unit, d_scores, [&](const ParameterEntry& entry, const at::Tensor& given) {
      if (!given.defined()) return;
      const at::Tensor part = given.contiguous();
      std::copy_n(part.const_data_ptr<float>(), entry.size(), gradient.begin() + entry.offset);
    });
  }

  ComposedNetwork network_;
  bool recompute_;
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Executor> make_composed_executor(const NetworkConfig& config,
                                                 std::int64_t config_features, bool recompute,
                                                 ThreadPool& pool) {
  return std::make_unique<ComposedExecutor>(config, config_features, recompute, pool);
}

ParameterTable composed_parameters(const NetworkConfig& config, std::int64_t config_features) {
  return ComposedNetwork(config, config_features).parameters();
}

}  // namespace tpudist
