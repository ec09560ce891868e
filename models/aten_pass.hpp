#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/aten_unit.hpp"
#include "models/network_layout.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// What one member's forward pass leaves.
struct Tape {
  at::Tensor node_input;      // [nodes, opcode_width + node_width]
  std::vector<at::Tensor> x;  // the rows before each layer and after the last
  at::Tensor values;          // float64 [rows of the last layer], the head's
};

// The two passes of one member on a unit, as ATen operators on one device. They read no number on
// the host, so that they can be recorded. Immutable, thread-safe. `layout` must outlive it.
class AtenPass {
 public:
  AtenPass(const NetworkLayout& layout, at::Device device) : net_(layout), device_(device) {}

  const NetworkLayout& layout() const { return net_; }
  at::Device device() const { return device_; }

  // `flat`: the member's parameters [P].
  Tape forward(const at::Tensor& flat, const DeviceUnit& unit) const;

  // d loss / d parameters [P], padding zero, from d loss / d value [rows of the last layer].
  // `needed`: only the needed rows count; the others' gradients must be 0 and take no part.
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
