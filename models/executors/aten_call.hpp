#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "models/executors/aten_pass.hpp"
#include "models/executors/aten_unit.hpp"
#include "models/executors/executor.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

class Recorder;
class Recording;

// The device's side of one call: the unit, parameters and results of its members in buffers that
// stay where they are. The passes read and write these alone, so that the same call can be loaded
// with another unit of the same shape and other parameters, and run again. Not thread-safe.
class AtenCall {
 public:
  // `backward`: a backward pass will follow the forward pass. With a recorder both are recorded
  // when they are first run, and run again from then on. `pass` and `recorder` must outlive it.
  AtenCall(const AtenPass& pass, const UnitInput& input, const StagedUnit& staged, int members,
           bool backward, Recorder* recorder);
  ~AtenCall();
  AtenCall(const AtenCall&) = delete;
  AtenCall& operator=(const AtenCall&) = delete;

  // Copies in the unit's arrays and the members' parameters, each in one piece. The copies are
  // still under way when this returns: the unit must live until results have been asked for, which
  // waits for them.
  void load(const StagedUnit& staged, const MemberRange& members);
  // Copies in d loss / d value [members, rows] from the host.
  void load_row_gradient(const at::Tensor& gradient);

  // Run the passes of all members, one member after the other. `needed` [members]: whose backward
  // pass runs over the needed rows alone.
  void forward();
  void backward(const std::vector<bool>& needed);

  // Return the results on the host, once the device has them.
  at::Tensor values() const { return values_.cpu(); }      // float64 [members, rows]
  at::Tensor gradient() const { return gradient_.cpu(); }  // float32 [members, P]

 private:
  int members() const { return static_cast<int>(values_.size(0)); }
  void run_forward();
  void run_backward(const std::vector<bool>& needed);

  const AtenPass& pass_;
  Recorder* const recorder_;
  std::vector<std::shared_ptr<const GraphInput>> graphs_;  // a signature goes by their addresses
  at::Tensor arrays_;                                      // the unit's
  at::Tensor parameters_;                                  // [members, P]
  DeviceUnit unit_;
  std::vector<Tape> tapes_;  // [members]; none where no backward pass follows
  at::Tensor values_, row_gradient_, gradient_;
  std::unique_ptr<Recording> forward_;
  std::map<std::vector<bool>, std::unique_ptr<Recording>> backward_;  // by what is needed
};

}  // namespace tpudist
