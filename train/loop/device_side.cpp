#include <algorithm>
#include <span>

#include "dist/collectives/device_reducer.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "models/kernels/flat_launches.hpp"
#include "train/loop/step_side.hpp"

namespace tpudist {
namespace {

// The kernels run on the default stream, like the network's calls and NCCL.
class StepDevice final : public ReducingDevice {
 public:
  explicit StepDevice(DeviceCopies& device) : device_(device) {}

  std::shared_ptr<void> allocate(std::size_t bytes) override { return device_.allocate(bytes); }
  void upload(const void* from, std::size_t bytes, void* to) override {
    const HostPart part{from, 0, bytes};
    device_.upload(std::span(&part, 1), bytes, to);
  }
  void put_values(std::int64_t count, const std::int32_t* row_of, const float* values,
                  std::int64_t length, std::int64_t at, float* rows) override {
    device_.select();
    launch_put_values(count, row_of, values, length, at, rows, nullptr);
  }
  void rows_to_slices(std::int64_t count, std::int64_t length, int ranks, std::int64_t slice,
                      const std::int32_t* row_of, const float* rows, float* slices) override {
    device_.select();
    launch_rows_to_slices(count, length, ranks, slice, row_of, rows, slices, nullptr);
  }
  void slices_to_rows(std::int64_t count, std::int64_t length, std::int64_t slice,
                      const float* slices, float* rows) override {
    device_.select();
    launch_slices_to_rows(count, length, slice, slices, rows, nullptr);
  }
  void add_leaves(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                  float* sums) override {
    device_.select();
    launch_leaf_sums(members, length, plan, leaves, sums, nullptr);
  }

 private:
  DeviceCopies& device_;
};

// Gradients, sums and weights stay on the device; losses and norms come to the host.
class DeviceSide : public StepSide {
 public:
  DeviceSide(const Experiment& experiment, const Network& network, JobContext& context)
      : experiment_(experiment),
        network_(network),
        length_(network.parameters().length()),
        stride_(length_ + kRowExtra),
        nccl_(communicator(experiment, context)),
        device_(*network.device()),
        reducer_(
            context.world, nccl_.get(), device_,
            experiment.dist.all_reduce ? DeviceReducer::Order::ranks : DeviceReducer::Order::tree,
            stride_, length_) {}

  Parameters begin(const BatchPlan& batch, const std::vector<StepCall>& calls,
                   TrainingState& state) override {
    reducer_.begin(batch.owners);
    first_row_.assign(1, 0);
    for (const StepCall& call : calls)
      first_row_.push_back(first_row_.back() + static_cast<int>(call.members.size()));
    // The units of a rank change from step to step: the memory grows a few times at most.
    const int most = batch.units() * experiment_.ensemble.members, rows = first_row_.back();
    if (rows_ < rows) {
      rows_ = std::min(most, rows + rows / 4);
      gradients_.reset();  // frees the old memory first
      gradients_ =
          network_.device()->allocate(static_cast<std::size_t>(rows_ * stride_) * sizeof(float));
    }
    return state.device_weights()->parameters();
  }

  // The gradients of chunks are added up on the host.
  void add(std::span<const StepCall> calls, std::size_t index,
           const std::function<void(const GradientRows&)>& gradient) override {
    int row = first_row_[index];
    float* const own = gradients() + row * stride_;
    if (calls.front().data->chunks.empty()) {
      gradient({own, stride_});
    } else {
      std::vector<std::vector<float>> rows(calls.front().members.size());
      for (std::vector<float>& values : rows) values.resize(length_);
      gradient(std::vector<std::span<float>>(rows.begin(), rows.end()));
      for (std::size_t m = 0; m < rows.size(); ++m)
        device_.upload(rows[m].data(), rows[m].size() * sizeof(float),
                       own + static_cast<std::int64_t>(m) * stride_);
    }
    for (const StepCall& call : calls) {
      for (std::size_t m = 0; m < call.members.size(); ++m)
        reducer_.add(call.members[m], call.unit, row++, static_cast<float>(call.losses[m]));
    }
  }

  void reduce() override { sums_ = reducer_.finalize(gradients()); }

  DeviceWeights::LossAndNorm totals(TrainingState& state) override {
    return state.device_weights()->losses_and_norms(sums_, stride_);
  }

  void step(TrainingState& state, const std::vector<double>& norms, const std::vector<bool>& active,
            double rate_factor) override {
    state.device_weights()->step(sums_, stride_, norms, active, rate_factor);
  }

  void add_point(TrainingState& state) override {
    state.device_weights()->add_point(state.training(), state.step, experiment_.train.steps);
  }

 private:
  float* gradients() const { return static_cast<float*>(gradients_.get()); }

  static std::unique_ptr<Communicator> communicator(const Experiment& experiment,
                                                    JobContext& context) {
    if (context.world.size() == 1) return nullptr;
    RankActivity* const activity = context.watchdog ? &context.watchdog->activity() : nullptr;
    return make_nccl_communicator(context.world, context.topology.device, activity,
                                  experiment.dist.timeout);
  }

  const Experiment& experiment_;
  const Network& network_;
  const std::int64_t length_, stride_;  // P, and P with the loss after it (padded)
  const std::unique_ptr<Communicator> nccl_;
  StepDevice device_;
  DeviceReducer reducer_;
  std::shared_ptr<void> gradients_;  // [rows, stride]: gradients [P], and behind them losses
  int rows_ = 0;
  std::vector<int> first_row_;   // [calls + 1]
  const float* sums_ = nullptr;  // [M, stride]
};

}  // namespace

std::unique_ptr<StepSide> make_device_side(const Experiment& experiment, const Network& network,
                                           JobContext& context) {
  return std::make_unique<DeviceSide>(experiment, network, context);
}

}  // namespace tpudist
