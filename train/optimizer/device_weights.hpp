#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/aligned.hpp"
#include "models/network/network.hpp"
#include "train/optimizer/optimizer.hpp"

namespace tpudist {

// What the steps of a training change of its members, on the host.
struct HostWeights {
  AlignedFloats flat;  // [M, P]
  FlatOptimizer optimizer;
  WeightAverage average;
};

// The parameters, moments and averages of `HostWeights` in the memory of a network's device, where
// steps change them with the host's bits. The host's lists are then behind, but not its counts of
// steps and points. Never waits but where it says so. Not thread-safe.
class DeviceWeights {
 public:
  // Borrows both. The device takes the host's lists before they are needed for the first time.
  DeviceWeights(const Network& network, HostWeights& host);

  // Brings the host's lists up to date, where they are behind: waits for the device.
  void bring_down();
  // The host's lists, which must be up to date, are about to change: the device takes them before
  // its next call.
  void host_changes() { newest_ = Newest::host; }

  // For calls of the network, until the host's lists change.
  const Parameters& parameters();

  // Of each member, the number behind its gradient (the loss), and the norm of the gradient.
  // `gradients`: on the device, members `stride` > P floats apart. Waits for the device.
  struct LossAndNorm {
    std::vector<double> loss, norm;  // [M]
  };
  LossAndNorm losses_and_norms(const float* gradients, std::int64_t stride);
  // FlatOptimizer::step.
  void step(const float* gradients, std::int64_t stride, const std::vector<double>& norms,
            const std::vector<bool>& active, const std::vector<double>& rate_factors);
  // WeightAverage::add.
  void add_point(const std::vector<bool>& active, std::int64_t done, std::int64_t steps);

  // Bytes on a device for such a network; `averages`: 0 or 1 lists of them.
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
  // Of the kernels (models/kernels/flat_launches.hpp).
  std::shared_ptr<void> places_, parts_, sums_, results_, coefficients_, shares_;
  TensorClip clip_;
  std::shared_ptr<void> tensor_parts_, tensor_sums_, tensor_scales_;
};

}  // namespace tpudist
