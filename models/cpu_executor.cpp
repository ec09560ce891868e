#include <string>

#include "core/error.hpp"
#include "models/buffer_pool.hpp"
#include "models/cpu_pass.hpp"
#include "models/executor.hpp"

namespace tpudist {
namespace {

class CpuExecutor : public Executor {
 public:
  CpuExecutor(const NetworkLayout& layout, double output_scale, ThreadPool& pool)
      : layout_(layout), output_scale_(output_scale), pool_(pool) {}

  UnitScores scores(const MemberRange& members, const UnitInput& input) const override {
    return CpuPass(layout_, output_scale_, pool_, buffers_, members, input).forward(false);
  }

  void gradient(const MemberRange& members, const UnitInput& input,
                const Network::LossGradient& loss_gradient,
                std::span<const std::span<float>> gradients) const override {
    CpuPass pass(layout_, output_scale_, pool_, buffers_, members, input);
    const UnitScores scores = pass.forward(true);
    const std::vector<double> score_gradient = loss_gradient(scores);
    check_score_gradient(scores, score_gradient);
    pass.backward(score_gradient, gradients);
  }

 private:
  const NetworkLayout& layout_;
  const double output_scale_;
  ThreadPool& pool_;
  mutable BufferPool buffers_;
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(const NetworkLayout& layout, double output_scale,
                                            ThreadPool& pool) {
  return std::make_unique<CpuExecutor>(layout, output_scale, pool);
}

}  // namespace tpudist
