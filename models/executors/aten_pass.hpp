#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/executors/aten_unit.hpp"
#include "models/network/network_layout.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// What one member's forward pass leaves for its backward pass.
struct Tape {
  at::Tensor node_input;      // [nodes, opcode_width + node_width]
  std::vector<at::Tensor> x;  // [layers + 1] the rows before each layer and behind the last
  at::Tensor values;          // float64 [rows behind the last layer], what the head makes of them
};

// The two passes of one member on a unit, as ATen operators on one device. They read no number on
// the host, so that they can be recorded. Immutable, thread-safe. `layout` must outlive it.
class AtenPass {
 public:
  AtenPass(const NetworkLayout& layout, at::Device device) : net_(layout), device_(device) {}

  const NetworkLayout& layout() const { return net_; }
  at::Device device() const { return device_; }

  // Runs the forward pass with the parameters `flat` [P] of the member.
  Tape forward(const at::Tensor& flat, const DeviceUnit& unit) const;

  // Returns d loss / d parameters [P], padding zero, from `row_gradient`, which is d loss / d value
  // [rows behind the last layer]. With `needed` it runs over the needed rows alone; the gradient of
  // all others must be 0.
  at::Tensor backward(const at::Tensor& flat, const DeviceUnit& unit, const Tape& tape,
                      const at::Tensor& row_gradient, bool needed) const;

 private:
  struct FlatView;
  at::ScalarType operand_type() const;
  at::Tensor multiply(const at::Tensor& a, const at::Tensor& b) const;
  at::Tensor multiply_add(const at::Tensor& bias, const at::Tensor& a, const at::Tensor& b) const;
  void backward_encoder(const FlatView& w, const FlatView& g, const DeviceUnit& unit,
                        const Tape& tape, const at::Tensor& z) const;

  const NetworkLayout& net_;
  const at::Device device_;
};

}  // namespace tpudist
