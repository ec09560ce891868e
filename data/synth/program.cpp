#include "data/synth/program.hpp"

#include <algorithm>
#include <utility>

#include "data/hlo/hlo_features.hpp"

namespace tpudist::synth {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// xla.PrimitiveType.
std::int64_t element_type(Dtype type) {
  switch (type) {
    case Dtype::pred:
      return 1;
    case Dtype::s32:
      return 4;
    case Dtype::f32:
      return 11;
    case Dtype::bf16:
      return 16;
    case Dtype::tuple:
      return 13;
  }
  return 0;
}

std::vector<std::int64_t> list_of(const Shape& values) {
  return {values.view().begin(), values.view().end()};
}

HloWindow window_of(const Op::Window& window) {
  const auto rank = static_cast<std::size_t>(window.size.rank);
  return {list_of(window.size),
          list_of(window.stride),
          list_of(window.pad_low),
          list_of(window.pad_high),
          std::vector<std::int64_t>(rank, 1),
          list_of(window.base_dilation),
          std::vector<std::int64_t>(rank, window.reversed ? 1 : 0)};
}

// Dimension numbers of [batch, spatial..., feature] tensors and [spatial..., in, out] kernels; the
// gradient of a kernel contracts the batch.
HloConvolution convolution_of(const Op& op) {
  const int last = op.shape.rank - 1;
  const bool kernel_gradient = op.convolution == ConvolutionKind::kernel_gradient;
  HloConvolution of;
  of.input_batch = kernel_gradient ? last : 0;
  of.input_feature = kernel_gradient ? 0 : last;
  of.kernel_input_feature = kernel_gradient                              ? 0
                            : op.convolution == ConvolutionKind::forward ? last - 1
                                                                         : last;
  of.kernel_output_feature = op.convolution == ConvolutionKind::input_gradient ? last - 1 : last;
  for (int i = 0; i < last - 1; ++i) {
    of.input_spatial.push_back(i + 1);
    of.kernel_spatial.push_back(kernel_gradient ? i + 1 : i);
  }
  of.output_batch = kernel_gradient ? last - 1 : 0;
  of.output_feature = last;
  return of;
}

class Backward {
 public:
  Backward(Program& program, const std::vector<std::int32_t>& inputs)
      : program_(program), trained_(program.ops.size()), gradient_(program.ops.size(), -1) {
    for (std::int32_t i = 0; i < program.nodes(); ++i) {
      const Op& op = program[i];
      const auto depends = [&](std::int32_t operand) { return needed(operand); };
      trained_[i] = op.code == opcode::parameter ? std::ranges::find(inputs, i) == inputs.end()
                                                 : std::ranges::any_of(op.operands, depends);
    }
  }

  std::vector<Weight> run(std::int32_t y) {
    const std::int32_t one = program_.add(opcode::constant, program_[y].type, {});
    const std::int32_t wide = add(opcode::broadcast, y, {one});
    give(y, add(opcode::subtract, y, {y, wide}));
    std::vector<Weight> weights;
    for (std::int32_t i = y; i >= 0; --i) {
      const std::int32_t gradient = gradient_[i];
      if (gradient < 0) continue;
      if (program_[i].code == opcode::parameter) {
        weights.push_back({i, gradient});
      } else {
        pass_on(i, Op(program_[i]), gradient);
      }
    }
    std::ranges::reverse(weights);
    return weights;
  }

 private:
  bool needed(std::int32_t op) const { return trained_[op]; }

  // An operation of the shape and type of `like`.
  std::int32_t add(std::uint8_t code, std::int32_t like, std::vector<std::int32_t> operands) {
    return program_.add(code, program_[like].type, Shape(program_[like].shape),
                        std::move(operands));
  }

  void give(std::int32_t op, std::int32_t part) {
    std::int32_t& sum = gradient_[op];
    sum = sum < 0 ? part : add(opcode::add, op, {sum, part});
  }

  // A product for the gradient of `of`, with the work of `from`.
  Op& product(const Op& from, std::int32_t of, std::int32_t left, std::int32_t right,
              std::array<int, 2> contracted) {
    const std::int32_t number = add(from.code, of, {left, right});
    give(of, number);
    Op& op = program_.ops[number];
    op.flops = from.flops;
    op.contracted = contracted;
    return op;
  }

  // y [..., p, q] = a b, each contracted over one of its last two dimensions.
  void pass_dot(const Op& op, std::int32_t gradient) {
    const int rank = op.shape.rank;
    const auto [a, b] = std::pair(op.operands[0], op.operands[1]);
    const int free_a = 2 * rank - 3 - op.contracted[0], free_b = 2 * rank - 3 - op.contracted[1];
    if (needed(b)) product(op, b, a, gradient, {free_a, rank - 2});
    if (needed(a)) product(op, a, gradient, b, {rank - 1, free_b});
  }

  void pass_convolution(const Op& op, std::int32_t gradient) {
    const auto [x, w] = std::pair(op.operands[0], op.operands[1]);
    const int last = op.shape.rank - 1;
    if (needed(w)) {
      Op& of_kernel = product(op, w, x, gradient, {0, 0});
      of_kernel.convolution = ConvolutionKind::kernel_gradient;
      of_kernel.window = op.window;
      of_kernel.window.size = {};
      for (int i = 1; i < last; ++i) of_kernel.window.size.push(op.shape[i]);
    }
    if (needed(x)) {
      Op& of_input = product(op, x, gradient, w, {last, last});
      of_input.convolution = ConvolutionKind::input_gradient;
      of_input.window = op.window;
      of_input.window.reversed = true;
    }
  }

  void pass_on(std::int32_t y, const Op& op, std::int32_t gradient) {
    switch (op.code) {
      case opcode::dot:
        return pass_dot(op, gradient);
      case opcode::convolution:
        return pass_convolution(op, gradient);
      case opcode::reduce_window: {
        const std::int32_t spread = add(opcode::pad, op.operands[0], {gradient});
        return give(op.operands[0],
                    add(opcode::multiply, op.operands[0], {spread, op.operands[0]}));
      }
      case opcode::transpose: {
        const std::int32_t back = add(opcode::transpose, op.operands[0], {gradient});
        Shape order = op.dimensions;
        for (int i = 0; i < order.rank; ++i) order[static_cast<int>(op.dimensions[i])] = i;
        program_.ops[back].dimensions = order;
        return give(op.operands[0], back);
      }
      default:
        break;
    }
    constexpr std::array<std::pair<std::uint8_t, std::uint8_t>, 5> kInverse{
        {{opcode::reshape, opcode::reshape},
         {opcode::broadcast, opcode::reduce},
         {opcode::reduce, opcode::broadcast},
         {opcode::slice, opcode::pad},
         {opcode::concatenate, opcode::slice}}};
    const auto inverse =
        std::ranges::find(kInverse, op.code, [](auto& pair) { return pair.first; });
    for (std::size_t k = 0; k < op.operands.size(); ++k) {
      const std::int32_t operand = op.operands[k];
      if (!needed(operand)) continue;
      if (inverse != kInverse.end()) {
        give(operand, add(inverse->second, operand, {gradient}));
      } else if (op.code == opcode::add || op.code == opcode::subtract) {
        give(operand, gradient);
      } else {  // by the other factor of a product, by the result of any other function
        const bool factor = op.code == opcode::multiply;
        give(operand, add(opcode::multiply, operand, {gradient, factor ? op.operands[1 - k] : y}));
      }
    }
  }

  Program& program_;
  std::vector<bool> trained_;  // depends on a weight
  std::vector<std::int32_t> gradient_;
};

}  // namespace

int bytes_of(Dtype type) {
  switch (type) {
    case Dtype::pred:
      return 1;
    case Dtype::bf16:
      return 2;
    case Dtype::s32:
    case Dtype::f32:
      return 4;
    case Dtype::tuple:
      return 0;
  }
  return 0;
}

Shape Shape::filled(int rank, std::int64_t value) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push(value);
  return shape;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : view()) product *= dim;
  return product;
}

Layout default_layout(const Shape& shape) {
  return {static_cast<std::int8_t>(shape.rank - 1),
          static_cast<std::int8_t>(shape.rank > 1 ? shape.rank - 2 : -1)};
}

double padded_elements(const Shape& shape, Layout layout) {
  double product = 1;
  for (int i = 0; i < shape.rank; ++i) {
    product *= static_cast<double>(i == layout.minor    ? round_up(shape[i], 128)
                                   : i == layout.second ? round_up(shape[i], 8)
                                                        : shape[i]);
  }
  return product;
}

std::int32_t Program::add(std::uint8_t code, Dtype type, Shape shape,
                          std::vector<std::int32_t> operands) {
  Op& op = ops.emplace_back();
  op.code = code;
  op.type = type;
  op.shape = shape;
  op.operands = std::move(operands);
  edges_ += std::ssize(op.operands);
  config_nodes_ += op.configurable();
  return static_cast<std::int32_t>(ops.size()) - 1;
}

void node_features(const Op& op, bool is_root, std::span<float, kNodeFeatures> values) {
  HloInstruction instruction;
  instruction.shape.element_type = element_type(op.type);
  instruction.shape.dimensions = list_of(op.shape);
  if (op.code == opcode::tuple) instruction.shape.tuple_shapes = std::ssize(op.operands);
  for (int i = op.shape.rank; i-- > 0;) instruction.shape.minor_to_major.push_back(i);
  if (op.code == opcode::parameter) instruction.parameter_number = op.number;
  instruction.dimensions = list_of(op.dimensions);
  instruction.window = window_of(op.window);
  if (op.convolution != ConvolutionKind::none) {
    instruction.convolution = convolution_of(op);
    instruction.feature_group_count = instruction.batch_group_count = 1;
  }
  if (op.code == opcode::slice) instruction.slice_limit = list_of(op.shape);
  write_node_features(instruction, is_root, values);
}

Graph to_graph(const Program& program, const std::string& name, bool with_config) {
  Graph graph;
  graph.name = name;
  graph.nodes = program.nodes();
  graph.edges = program.edges();
  graph.node_splits = std::vector(program.splits);
  std::vector<float> features(program.ops.size() * kNodeFeatures);
  std::vector<std::uint8_t> opcodes;
  std::vector<std::int32_t> edges, config_nodes;
  edges.reserve(2 * graph.edges);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto node = static_cast<std::int32_t>(i);
    const bool is_root = std::ranges::find(program.splits, node + 1) != program.splits.end() ||
                         node + 1 == graph.nodes;
    node_features(op, is_root,
                  std::span<float, kNodeFeatures>(&features[i * kNodeFeatures], kNodeFeatures));
    opcodes.push_back(op.code);
    for (const std::int32_t operand : op.operands) {
      edges.insert(edges.end(), {node, operand});
    }
    if (with_config && op.configurable()) config_nodes.push_back(node);
  }
  graph.node_features = std::move(features);
  graph.opcodes = std::move(opcodes);
  graph.edge_index = std::move(edges);
  graph.config_nodes = std::move(config_nodes);
  return graph;
}

std::vector<Weight> add_gradients(Program& program, std::int32_t y,
                                  const std::vector<std::int32_t>& inputs) {
  return Backward(program, inputs).run(y);
}

}  // namespace tpudist::synth
