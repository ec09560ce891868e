#include <algorithm>
#include <span>

#include "core/buffer_cache.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "train/loop/step_side.hpp"

namespace tpudist {
namespace {

// Adds the rows of a call as soon as they are computed; one thread for each call.
class HostSide : public StepSide {
 public:
  HostSide(const Experiment& experiment, const Network& network, JobContext& context)
      : experiment_(experiment),
        network_(network),
        context_(context),
        length_(static_cast<std::size_t>(network.parameters().length())),
        stride_(length_ + kRowExtra) {
    if (experiment.dist.all_reduce)
      throw ConfigError("dist.reduce: nccl adds gradients on GPUs; on the CPU give tree");
    reducer_ = make_tree_reducer(context.world, static_cast<std::int64_t>(stride_), context.pool);
  }

  Parameters begin(const BatchPlan& batch, const std::vector<StepCall>&,
                   TrainingState& state) override {
    reducer_->begin(batch.owners);
    step_ = batch.step + 1;
    return network_.place(state.weights().flat);
  }

  void add(std::span<const StepCall> calls, std::size_t,
           const std::function<void(const GradientRows&)>& gradient) override {
    const StepCall& call = calls.front();  // only a device joins calls
    const std::size_t members = call.members.size();
    const Buffer buffer = buffers_.take(static_cast<std::int64_t>(members * stride_));
    std::vector<std::span<float>> rows, gradients;
    for (std::size_t m = 0; m < members; ++m) {
      rows.push_back(buffer.first(members * stride_).subspan(m * stride_, stride_));
      gradients.push_back(rows.back().first(length_));
    }
    gradient(gradients);
    const TraceSpan span(context_.trace, "add gradients", step_, call.unit, call.data->label);
    for (std::size_t m = 0; m < members; ++m) {
      const std::span<float> behind = rows[m].subspan(length_);
      std::ranges::fill(behind, 0.0f);
      behind[0] = static_cast<float>(call.losses[m]);
      reducer_->add(call.members[m], call.unit, rows[m]);
    }
  }

  void reduce() override { sums_ = reducer_->finalize(); }

  DeviceWeights::LossAndNorm totals(TrainingState& state) override {
    DeviceWeights::LossAndNorm all;
    all.norm = state.weights().optimizer.gradient_norms(sums_, stride(), context_.pool);
    for (std::size_t m = 0; m < all.norm.size(); ++m)
      all.loss.push_back(sums_[m * stride_ + length_]);
    if (context_.world.size() == 1) return all;
    all.bits = hash64(std::as_bytes(std::span(state.weights().flat)));
    all.bits = hash64(std::as_bytes(sums_), all.bits);
    return all;
  }

  void step(TrainingState& state, const std::vector<double>& norms, const std::vector<bool>& active,
            double rate_factor) override {
    HostWeights& weights = state.change_weights();
    weights.optimizer.step(weights.flat, sums_, stride(), norms, active, rate_factor,
                           context_.pool);
  }

  void add_point(TrainingState& state) override {
    HostWeights& weights = state.change_weights();
    weights.average.add(weights.flat, state.training(), state.step, experiment_.train.steps,
                        context_.pool);
  }

 private:
  std::int64_t stride() const { return static_cast<std::int64_t>(stride_); }

  const Experiment& experiment_;
  const Network& network_;
  JobContext& context_;
  const std::size_t length_, stride_;  // P, and P with the loss after it (padded)
  std::unique_ptr<GradientReducer> reducer_;
  BufferCache buffers_;
  std::int64_t step_ = 0;
  std::span<const float> sums_;  // [M, stride]
};

}  // namespace

std::unique_ptr<StepSide> make_host_side(const Experiment& experiment, const Network& network,
                                         JobContext& context) {
  return std::make_unique<HostSide>(experiment, network, context);
}

}  // namespace tpudist
