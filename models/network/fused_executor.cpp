#include "models/network/executor.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "core/buffer_cache.hpp"
#include "models/network/fused_pass.hpp"

namespace tpudist {
namespace {

// Most floats of states of members that run together. They stay in the caches until the backward
// pass uses them.
constexpr std::int64_t kCachedStates = std::int64_t{1} << 19;

class FusedExecutor : public Executor {
 public:
  FusedExecutor(const NetworkConfig& config, const FeatureSchema& schema,
                const ParameterTable& table, bool recompute, ThreadPool& pool)
      : network_(config, schema, table), recompute_(recompute), pool_(pool) {}

  int members_together(const Plan& plan) const override {
    const std::int64_t states = std::max<std::int64_t>(network_.state_floats(plan), 1);
    return static_cast<int>(std::max<std::int64_t>(kCachedStates / states, 1));
  }

  UnitScores scores(const MemberRange& members, const UnitInput& input) const override {
    return pass(members, input, UnitUse::scores).forward();
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const LossGradient& loss_gradient, const GradientRows& rows,
                bool common) const override {
    const std::span<const std::span<float>> gradients = rows.host;
    FusedPass pass = this->pass(members, input, common ? UnitUse::gradients : UnitUse::differences);
    const UnitScores scores = pass.forward();
    const ScoreGradient score_gradient = loss_gradient(scores);
    const auto aligned = [](std::span<float> gradient) {
      return reinterpret_cast<std::uintptr_t>(gradient.data()) % 64 == 0;
    };
    if (std::all_of(gradients.begin(), gradients.end(), aligned)) {
      pass.backward(score_gradient, gradients);
      return;
    }
    std::vector<AlignedFloats> copies(gradients.size(), AlignedFloats(network_.parameters));
    pass.backward(score_gradient, std::vector<std::span<float>>(copies.begin(), copies.end()));
    for (std::size_t m = 0; m < copies.size(); ++m)
      std::ranges::copy(copies[m], gradients[m].begin());
  }

 private:
  FusedPass pass(const MemberRange& members, const UnitInput& input, UnitUse use) const {
    const auto own = members.flat.subspan(members.first * network_.parameters,
                                          members.count * network_.parameters);
    return {network_, own, input, use, recompute_, pool_, buffers_, members.first};
  }

  const FusedNetwork network_;
  const bool recompute_;
  ThreadPool& pool_;
  mutable BufferCache buffers_;
};

}  // namespace

std::unique_ptr<Executor> make_fused_executor(const NetworkConfig& config,
                                              const FeatureSchema& schema,
                                              const ParameterTable& table, bool recompute,
                                              ThreadPool& pool) {
  return std::make_unique<FusedExecutor>(config, schema, table, recompute, pool);
}

}  // namespace tpudist
