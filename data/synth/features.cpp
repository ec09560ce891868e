#include "data/synth/features.hpp"

#include <algorithm>
#include <vector>

#include "data/hlo/hlo_features.hpp"

namespace tpudist::synth {
namespace {

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

HloWindow window_of(const Window& window) {
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

}  // namespace

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
  edges.reserve(static_cast<std::size_t>(2 * graph.edges));
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

}  // namespace tpudist::synth
