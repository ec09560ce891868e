#include "models/executors/cpu_executor.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "core/buffer_cache.hpp"
#include "models/executors/cpu_pass.hpp"

namespace tpudist {
namespace {

// States of members that run together, in floats: they stay in the caches until the backward pass
// takes them.
constexpr std::int64_t kCachedStates = std::int64_t{1} << 19;

class CpuExecutor : public Executor {
 public:
  CpuExecutor(const NetworkLayout& layout, double output_scale, bool recompute, ThreadPool& pool)
      : layout_(layout), output_scale_(output_scale), recompute_(recompute), pool_(pool) {}

  int members_together(const Plan& plan) const override {
    const std::int64_t states = std::max<std::int64_t>(state_floats(layout_, plan), 1);
    return static_cast<int>(std::max<std::int64_t>(kCachedStates / states, 1));
  }

  UnitScores scores(const MemberRange& members, const UnitInput& input) const override {
    return CpuPass(layout_, output_scale_, pool_, buffers_, members, input, PassKind::scores, false)
        .forward();
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const LossGradient& loss_gradient,
                std::span<const std::span<float>> gradients, bool common) const override {
    CpuPass pass(layout_, output_scale_, pool_, buffers_, members, input,
                 common ? PassKind::gradient : PassKind::gradient_of_differences, recompute_);
    const UnitScores scores = pass.forward();
    const ScoreGradient score_gradient = loss_gradient(scores);
    check_score_gradient(scores, score_gradient);
    const auto aligned = [](std::span<float> gradient) {
      return reinterpret_cast<std::uintptr_t>(gradient.data()) % 64 == 0;
    };
    if (std::all_of(gradients.begin(), gradients.end(), aligned)) {
      pass.backward(score_gradient, gradients);
      return;
    }
    std::vector<AlignedFloats> copies(gradients.size(), AlignedFloats(layout_.table.length()));
    pass.backward(score_gradient, std::vector<std::span<float>>(copies.begin(), copies.end()));
    for (std::size_t m = 0; m < copies.size(); ++m)
      std::ranges::copy(copies[m], gradients[m].begin());
  }

 private:
  const NetworkLayout& layout_;
  const double output_scale_;
  const bool recompute_;
  ThreadPool& pool_;
  mutable BufferCache buffers_;
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(const NetworkLayout& layout, double output_scale,
                                            bool recompute, ThreadPool& pool) {
  return std::make_unique<CpuExecutor>(layout, output_scale, recompute, pool);
}

}  // namespace tpudist
