#pragma once

#include <cstdint>
#include <span>

#include "models/network/unit_scores.hpp"
#include "models/operators/fused_call.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// The readout as one operator of the CPU. A Linear gives one number at each row after the last
// layer. These numbers are added up over the nodes of every configuration, times `scale`.
// Immutable, thread-safe.
class FusedReadout {
 public:
  // `in`: channels after the last layer. `after_relu`: as in FusedSage.
  FusedReadout(std::int64_t in, double scale, const ParameterTable& table, bool after_relu);

  // x: the rows after the last layer, of all members.
  UnitScores forward(const FusedCall& call, const MemberRows& x) const;
  // Writes the gradients of weight and bias. Returns the gradient of x, before the ReLU whose
  // output x is, for the members of the set. `score_gradient` [all members, configurations].
  MemberRows backward(const FusedCall& call, MemberSet members, const MemberRows& x,
                      std::span<const double> score_gradient, MemberGradients gradients) const;

 private:
  std::int64_t in_, weight_, bias_;
  double scale_;
  bool after_relu_;
};

}  // namespace tpudist
