#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>

namespace tpudist {

// A copy of the parameters of an ensemble on a network's device. Only who made it may change it,
// between calls.
class PlacedParameters {
 public:
  virtual ~PlacedParameters() = default;
  virtual int members() const = 0;
  // On the device, [M, Q] as of placed_offsets (models/parameters).
  virtual float* data() const = 0;
  // Those of some members, in this order.
  virtual std::shared_ptr<const PlacedParameters> some(std::span<const int> members) const = 0;
};

// The parameters [M, P] float32 that a network computes with: borrowed from the host, with a copy
// on the network's device that Network::place() made. Without the copy every call on a device makes
// its own, so callers with more than one call on the same parameters place them first.
struct Parameters {
  template <std::convertible_to<std::span<const float>> Floats>
  Parameters(const Floats& flat) : flat(flat) {}

  std::span<const float> flat;  // with a copy it is not read
  std::shared_ptr<const PlacedParameters> placed = nullptr;
};

// Rows of gradients in the memory of a network's device, for all calls of a step. Calls write
// different rows.
class GradientStore {
 public:
  virtual ~GradientStore() = default;
  virtual int rows() const = 0;
  // On the device, [rows, length]: gradients [P], and behind them what others put there, at first
  // zeros. Calls have queued what they write when they return.
  virtual float* data() const = 0;
};

// Where a call puts the gradients of its members [count, P].
struct GradientRows {
  // Into host memory; they are there when the call returns.
  template <std::convertible_to<std::span<const std::span<float>>> Rows>
  GradientRows(const Rows& rows) : host(rows) {}
  // Into rows first .. first + count - 1 of a store of the network. The call does not wait for the
  // device to compute them.
  GradientRows(GradientStore& store, int first) : store(&store), first(first) {}

  std::span<const std::span<float>> host;
  GradientStore* store = nullptr;
  int first = 0;
};

}  // namespace tpudist
