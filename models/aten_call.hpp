#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/aten_pass.hpp"
#include "models/aten_unit.hpp"
#include "models/executor.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// The device's side of one call: the unit, parameters and results of its members in buffers that
// stay where they are. The passes read and write these alone, so that the same call can be loaded
// with another unit of the same shape and other parameters, and run again. `pass` must outlive it.
// Not thread-safe.
class AtenCall {
 public:
  AtenCall(const AtenPass& pass, const UnitInput& input, const StagedUnit& staged, int members);
  AtenCall(const AtenCall&) = delete;
  AtenCall& operator=(const AtenCall&) = delete;

  int members() const { return static_cast<int>(tapes_.size()); }
  std::int64_t rows() const { return values_.size(1); }  // of the last layer

  // Copies in the unit's arrays and the members' parameters, each in one piece. The unit must live
  // on until results have been asked for: its arrays are still under way when this returns, and the
  // results are waited for.
  void load(const StagedUnit& staged, const MemberRange& members);
  // d loss / d value [members, rows], on the host.
  void load_row_gradient(const at::Tensor& gradient);

  // The work: every member, one after the other. Without `keep`, no backward pass can follow.
  void forward(bool keep);
  void backward(const std::vector<bool>& needed);  // [members]

  // On the host, waited for: float64 [members, rows], float32 [members, P].
  at::Tensor values() const { return values_.cpu(); }
  at::Tensor gradient() const { return gradient_.cpu(); }

 private:
  const AtenPass& pass_;
  at::Tensor arrays_;      // the unit's
  at::Tensor parameters_;  // [members, P]
  DeviceUnit unit_;
  std::vector<Tape> tapes_;
  at::Tensor values_, row_gradient_, gradient_;
};

}  // namespace tpudist
