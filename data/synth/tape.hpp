#pragma once

#include <cstdint>
#include <vector>

#include "data/synth/program.hpp"

namespace tpudist::synth {

// Writes the forward pass of a model operation by operation and records what the backward pass
// needs; `backward` then writes the gradients in reverse order. Activations are identified by their
// operation's number. Weights with a gradient are collected in `weights` for the optimizer.
class Tape {
 public:
  Tape(Program& program, Dtype type) : program_(program), type_(type) {}

  std::int32_t parameter(const Shape& shape);
  std::int32_t broadcast_constant(const Shape& shape);

  // Layers: x is [batch, spatial..., channels] or [rows, features].
  std::int32_t convolution(std::int32_t x, std::int64_t channels, std::int64_t kernel,
                           std::int64_t stride);
  std::int32_t dot(std::int32_t x, std::int64_t features);
  // Attention products of [batch, heads, rows, d]: with `transposed`, a b^T, otherwise a b.
  std::int32_t batch_dot(std::int32_t a, std::int32_t b, bool transposed);
  std::int32_t reshape(std::int32_t x, const Shape& shape);
  std::int32_t transpose(std::int32_t x, const Shape& order);
  std::int32_t elementwise(std::uint8_t code, std::int32_t x);  // f(x)
  std::int32_t combine(std::uint8_t code, std::int32_t x,
                       std::int32_t with);  // f(x, y); y is a constant for gradients
  std::int32_t bias(std::int32_t x);
  std::int32_t relu(std::int32_t x);
  std::int32_t max_pool(std::int32_t x);   // halves the spatial dimensions
  std::int32_t normalise(std::int32_t x);  // over the last dimension: statistics, scale
  std::int32_t softmax(std::int32_t x);
  std::int32_t concatenate(std::int32_t x, std::int32_t side);  // along the last dimension

  // A block starts at x, where the backward pass adds up the gradients of its residual connection
  // and branches.
  void begin_block(std::int32_t x);
  std::int32_t add_residual(std::int32_t y, std::int32_t x);  // y + x, the block's start
  // Steps between the two form a side branch, from the block's start to an activation of the same
  // shape as the main path has at the end.
  void begin_branch();
  void end_branch();

  // Operations, and configurable ones among them, that the backward pass of the recorded steps will
  // add.
  std::int64_t pending_nodes() const { return pending_nodes_; }
  std::int64_t pending_config_nodes() const { return pending_config_nodes_; }

  void backward(std::int32_t y);

  struct Weight {
    std::int32_t value, gradient;
  };
  const std::vector<Weight>& weights() const { return weights_; }

 private:
  enum class Kind {
    convolution,
    dot,
    batch_dot,
    reshape,
    transpose,
    elementwise,
    max_pool,
    bias,
    block,
    residual,
    branch_begin,
    branch_end
  };
  struct Step {
    Kind kind;
    std::int32_t y, x, other;  // output, input, weight or second operand
  };
  void record(Kind kind, std::int32_t y, std::int32_t x, std::int32_t other, std::int64_t nodes,
              std::int64_t config_nodes = 0);
  std::int32_t backward_convolution(const Step& step, std::int32_t gradient);
  std::int32_t backward_dot(const Step& step, std::int32_t gradient);
  std::int32_t backward_max_pool(const Step& step, std::int32_t gradient);
  std::int32_t reduce_to_last(std::int32_t x);
  const Shape& shape(std::int32_t op) const { return program_[op].shape; }
  Op& at(std::int32_t op) { return program_.ops[static_cast<std::size_t>(op)]; }

  Program& program_;
  Dtype type_;
  std::vector<Step> steps_;
  std::vector<Weight> weights_;
  std::int32_t parameters_ = 0;
  std::int64_t pending_nodes_ = 0, pending_config_nodes_ = 0;
};

}  // namespace tpudist::synth
