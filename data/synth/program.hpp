#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"

namespace tpudist::synth {

// Opcode numbers of HLO operations as in TpuGraphs (tpu_graphs/process_data/xla/hlo_opcode.h).
namespace opcode {
inline constexpr std::uint8_t add = 2, bitcast = 11, broadcast = 13, compare = 20, concatenate = 22,
                              constant = 24, convert = 25, convolution = 26, copy = 27, divide = 32,
                              dot = 34, exponential = 37, fusion = 41, get_tuple_element = 45,
                              iota = 48, maximum = 57, minimum = 58, multiply = 59, negate = 60,
                              pad = 62, parameter = 63, reduce = 70, reduce_window = 72,
                              reshape = 75, rsqrt = 81, select = 83, slice = 92, sqrt = 94,
                              subtract = 95, tanh = 96, transpose = 98, tuple = 100;
}  // namespace opcode

// The order of the type columns of node_feat; only the types that the generator uses.
enum class Dtype : std::uint8_t { pred, s32, f32, bf16, tuple };
int bytes_of(Dtype type);  // of one element

// Dimensions of a tensor, major first, at most 5.
struct Shape {
  std::array<std::int64_t, 5> dims{};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> list) {
    for (const std::int64_t dim : list) push(dim);
  }
  static Shape filled(int rank, std::int64_t value);
  void push(std::int64_t dim) { dims[rank++] = dim; }
  std::int64_t operator[](int i) const { return dims[i]; }
  std::int64_t& operator[](int i) { return dims[i]; }
  std::span<const std::int64_t> view() const {
    return {dims.data(), static_cast<std::size_t>(rank)};
  }
  std::int64_t elements() const;
  bool operator==(const Shape&) const = default;
};

// The two minor dimensions of a tensor in memory, which lie along the 128 lanes and the 8 sublanes
// of a tile. -1 if the tensor has no such dimension, or an operation accepts any layout.
struct Layout {
  std::int8_t minor = -1, second = -1;
  bool operator==(const Layout&) const = default;
};
Layout default_layout(const Shape& shape);  // the last dimension is minor

// The number of elements with padding to tiles of 8 x 128.
double padded_elements(const Shape& shape, Layout layout);

// How a convolution reads its operands: [batch, spatial..., feature] with a kernel [spatial..., in,
// out]. The gradient of the kernel contracts the batch.
enum class ConvolutionKind : std::uint8_t { none, forward, input_gradient, kernel_gradient };

struct Op {
  // Of a convolution, one entry per spatial dimension.
  struct Window {
    Shape size, stride, pad_low, pad_high, base_dilation;
    bool reversed = false;
  };

  std::uint8_t code = 0;
  Dtype type = Dtype::f32;
  ConvolutionKind convolution = ConvolutionKind::none;
  Shape shape;
  std::vector<std::int32_t> operands;  // numbers of earlier operations
  Shape dimensions;                    // broadcast, reduce, transpose, concatenate
  Window window;                       // convolution, reduce-window
  std::int32_t number = 0;             // of a parameter
  double flops = 0;                    // convolution and dot
  // Convolution and dot: the summed dimension of each operand.
  std::array<int, 2> contracted{};

  bool configurable() const {
    return code == opcode::convolution || code == opcode::dot || code == opcode::reshape;
  }
};

// Operations in topological order: operands come before their users.
struct Program {
  std::vector<Op> ops;
  // Index of the first operation of each computation, and the end: 0, ..., n.
  std::vector<std::int64_t> splits;

  std::int32_t add(std::uint8_t code, Dtype type, Shape shape,
                   std::vector<std::int32_t> operands = {});
  std::int64_t nodes() const { return std::ssize(ops); }
  std::int64_t edges() const { return edges_; }
  std::int64_t config_nodes() const { return config_nodes_; }
  const Op& operator[](std::int32_t i) const { return ops[i]; }

 private:
  std::int64_t edges_ = 0, config_nodes_ = 0;
};

// The 140 columns of node_feat for one operation, by write_node_features.
void node_features(const Op& op, bool is_root, std::span<float, kNodeFeatures> row);

// The graph as a reader of the NPZ file sees it. `with_config` lists the configurable nodes (layout
// collections); tile graphs have none.
Graph to_graph(const Program& program, const std::string& name, bool with_config);

// A parameter that is trained, and the operation that makes its gradient.
struct Weight {
  std::int32_t value, gradient;
};

// Appends the backward pass of `y`: gradients of all operations that depend on a weight, in reverse
// order, added up if an operation has several users. `inputs`: parameters that are not trained.
std::vector<Weight> add_gradients(Program& program, std::int32_t y,
                                  const std::vector<std::int32_t>& inputs);

}  // namespace tpudist::synth
