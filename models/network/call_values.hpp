#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tpudist {

// A copy of an ensemble's parameters on a network's device. Only its maker may change it, between
// calls.
class PlacedParameters {
 public:
  virtual ~PlacedParameters() = default;
  virtual int members() const = 0;
  // On the device: [M, Q], laid out by placed_offsets (core/parameters).
  virtual float* data() const = 0;
  // The parameters of some members, in this order.
  virtual std::shared_ptr<const PlacedParameters> some(std::span<const int> members) const = 0;
};

// The parameters [M, P] float32 that a network computes with: borrowed from the host, with a copy
// on the network's device from Network::place(). Without the copy every call on a device makes its
// own, so place parameters that more than one call uses.
struct Parameters {
  template <std::convertible_to<std::span<const float>> Floats>
  Parameters(const Floats& flat) : flat(flat) {}

  std::span<const float> flat;  // not read if there is a copy
  std::shared_ptr<const PlacedParameters> placed = nullptr;
};

// Where a call puts the gradients of its members [count, P].
struct GradientRows {
  // Into host memory, complete when the call returns.
  template <std::convertible_to<std::span<const std::span<float>>> Rows>
  GradientRows(const Rows& rows) : host(rows) {}
  // Into memory of the network's device, rows `stride` >= P floats apart. The call returns when its
  // writes are queued; it does not wait for them.
  GradientRows(float* first, std::int64_t stride) : device(first), stride(stride) {}

  std::span<const std::span<float>> host;
  float* device = nullptr;
  std::int64_t stride = 0;
};

// The scores of all configurations of a unit, for the members of the call. A score is common +
// delta; only delta decides the ranking.
struct UnitScores {
  int members = 0;
  std::int64_t configs = 0;
  std::vector<double> delta;  // [members, configs]
  // [members, slates] the part of the score that all configurations of a slate share; 0 where the
  // call left it out.
  std::vector<double> common;
};

// The gradient of a loss with respect to the scores of a unit.
struct ScoreGradient {
  std::vector<double> values;  // [members, configs] d loss / d score
  // [members] whether the losses of all slates are translation-invariant at these scores. Then the
  // values of each slate sum to 0 apart from rounding. Empty: for no member.
  std::vector<bool> translation_invariant;
  bool is_translation_invariant(int member) const {
    return !translation_invariant.empty() && translation_invariant[member];
  }
};

// Returns d loss / d score for the scores of a call. On a joined input `configs` is the number of
// columns of a member: a leaf's scores are those of its run in JoinedUnits::configs.
using LossGradient = std::function<ScoreGradient(const UnitScores&)>;

}  // namespace tpudist
