#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/aligned.hpp"
#include "models/network/network.hpp"
#include "train/optimizer/optimizer.hpp"

namespace tpudist {

// The data of members that training steps change, on the host.
struct HostWeights {
  AlignedFloats flat;  // [M, P]
  FlatOptimizer optimizer;
  WeightAverage average;
};

// The parameters, moments and averages of `HostWeights` in the memory of a network's device. Steps
// on the device give the same bits as on the host. The host's lists are then out of date, but not
// its counts of steps and points. Methods wait for the device only if they say so. Not thread-safe.
class DeviceWeights {
 public:
  // Borrows both. Copies the host's lists to the device before their first use.
  DeviceWeights(const Network& network, HostWeights& host);

  // Brings the host's lists up to date. Waits for the device if they are out of date.
  void bring_down();
  // Says that the host's lists, which must be up to date, are about to change: the next call copies
  // them to the device.
  void host_changes() { newest_ = Newest::host; }

  // The parameters for calls of the network, valid until the host's lists change.
  const Parameters& parameters();

  // The loss of each member (the float after its gradient), and the norm of the gradient.
  // `gradients`: on the device, members `stride` > P floats apart. Waits for the device.
  struct LossAndNorm {
    std::vector<double> loss, norm;  // [M]
    std::uint64_t bits = 0;          // hash of both, the gradients and the parameters
  };
  LossAndNorm losses_and_norms(const float* gradients, std::int64_t stride);
  // FlatOptimizer::step.
  void step(const float* gradients, std::int64_t stride, const std::vector<double>& norms,
            const std::vector<bool>& active, double rate_factor);
  // WeightAverage::add.
  void add_point(const std::vector<bool>& active, std::int64_t done, std::int64_t steps);

  // Bytes on a device for a network with this table; `averages`: lists of averages, 0 or 1.
  static std::uint64_t bytes(const ParameterTable& table, int members, int averages);

 private:
  enum class Newest { host, device, both };
  void bring_up();
  template <typename T>
  const T* uploaded(const std::vector<T>& values, const std::shared_ptr<void>& to);
  float* list(int index) const;
  int lists() const { return host_.average.is_kept() ? 4 : 3; }

  const Network& network_;
  DeviceCopies& device_;
  HostWeights& host_;
  const int members_;
  const std::int64_t length_;       // P
  std::int64_t placed_length_ = 0;  // of a row of placed parameters
  Newest newest_ = Newest::host;
  Parameters parameters_;
  std::shared_ptr<void> lists_;  // [3 or 4, M, P]: parameters, first and second moments, averages
  // Arguments of the kernels (models/kernels/flat_launches.hpp).
  std::shared_ptr<void> places_, parts_, sums_, totals_, coefficients_, shares_;
  TensorClip clip_;
  std::shared_ptr<void> tensor_parts_, tensor_sums_, tensor_scales_;
};

}  // namespace tpudist
