#include "data/synth/features.hpp"

#include <algorithm>

namespace tpudist::synth {
namespace {

// First columns of the parts of node_feat.
enum Column {
  kIsRoot = 0,
  kTypes = 2,
  kShape = 21,
  kTupleSize = 29,
  kParameterNumber = 30,
  kDimensions = 31,
  kWindowSize = 37,
  kWindowStride = 45,
  kPadLow = 53,
  kPadHigh = 61,
  kWindowDilation = 69,
  kBaseDilation = 77,
  kReversal = 85,
  kReversedCount = 91,
  kNotReversedCount = 92,
  kInputBatch = 93,
  kInputFeature = 94,
  kInputSpatial = 95,
  kKernelInput = 99,
  kKernelOutput = 100,
  kKernelSpatial = 101,
  kOutputBatch = 105,
  kOutputFeature = 106,
  kGroupCounts = 107,
  kSliceStart = 109,
  kSliceStride = 113,
  kSliceLimit = 117,
  kDynamicSlice = 121,
  kPaddingLow = 125,
  kPaddingHigh = 129,
  kLayout = 134,
};

int type_column(Dtype type) {
  switch (type) {
    case Dtype::pred:
      return kTypes + 1;
    case Dtype::s32:
      return kTypes + 4;
    case Dtype::f32:
      return kTypes + 11;
    case Dtype::bf16:
      return kTypes + 13;
    case Dtype::tuple:
      return kTypes + 16;
  }
  return kTypes;
}

class Row {
 public:
  explicit Row(std::span<float, kNodeFeatures> values) : values_(values) {
    std::fill(values.begin(), values.end(), 0.0f);
  }
  void set(int column, double value) {
    values_[static_cast<std::size_t>(column)] = static_cast<float>(value);
  }
  void list(int column, const Shape& values) {
    for (int i = 0; i < values.rank; ++i) set(column + i, static_cast<double>(values[i]));
  }
  // `width` columns of values, then their sum and product (1 when there are none).
  void sequence(int column, const Shape& values, int width) {
    double sum = 0, product = 1;
    for (int i = 0; i < values.rank; ++i) {
      if (i < width) set(column + i, static_cast<double>(values[i]));
      sum += static_cast<double>(values[i]);
      product *= static_cast<double>(values[i]);
    }
    set(column + width, sum);
    set(column + width + 1, product);
  }

 private:
  std::span<float, kNodeFeatures> values_;
};

void window_features(const Window& window, Row& row) {
  Shape ones;
  for (int i = 0; i < window.size.rank; ++i) ones.push(1);
  row.sequence(kWindowSize, window.size, 6);
  row.sequence(kWindowStride, window.stride, 6);
  row.sequence(kPadLow, window.pad_low, 6);
  row.sequence(kPadHigh, window.pad_high, 6);
  row.sequence(kWindowDilation, ones, 6);
  row.sequence(kBaseDilation, window.base_dilation, 6);
  if (window.reversed) row.list(kReversal, ones);
  row.set(window.reversed ? kReversedCount : kNotReversedCount, window.size.rank);
}

// Dimension numbers of [batch, spatial..., feature] tensors and [spatial..., in, out] kernels; for
// the gradient of a kernel the batch is what is contracted.
void convolution_features(const Op& op, Row& row) {
  const int last = op.shape.rank - 1;
  const bool kernel_gradient = op.convolution == ConvolutionKind::kernel_gradient;
  row.set(kInputBatch, kernel_gradient ? last : 0);
  row.set(kInputFeature, kernel_gradient ? 0 : last);
  row.set(kKernelInput, kernel_gradient                              ? 0
                        : op.convolution == ConvolutionKind::forward ? last - 1
                                                                     : last);
  row.set(kKernelOutput, op.convolution == ConvolutionKind::input_gradient ? last - 1 : last);
  for (int i = 0; i < last - 1; ++i) {
    row.set(kInputSpatial + i, i + 1);
    row.set(kKernelSpatial + i, kernel_gradient ? i + 1 : i);
  }
  row.set(kOutputBatch, kernel_gradient ? last - 1 : 0);
  row.set(kOutputFeature, last);
  row.set(kGroupCounts, 1);
}

}  // namespace

void node_features(const Op& op, bool is_root, std::span<float, kNodeFeatures> values) {
  Row row(values);
  row.set(kIsRoot, is_root);
  row.set(type_column(op.type), 1);
  row.sequence(kShape, op.shape, 6);
  if (op.code == opcode::tuple) row.set(kTupleSize, static_cast<double>(op.operands.size()));
  if (op.code == opcode::parameter) row.set(kParameterNumber, op.number);
  row.list(kDimensions, op.dimensions);
  window_features(op.window, row);
  if (op.convolution != ConvolutionKind::none) convolution_features(op, row);
  row.set(kGroupCounts + 1, op.convolution != ConvolutionKind::none);
  for (const int column : {kSliceStart, kSliceStride, kDynamicSlice, kPaddingLow, kPaddingHigh}) {
    row.sequence(column, {}, 2);
  }
  row.sequence(kSliceLimit, op.code == opcode::slice ? op.shape : Shape(), 2);
  for (int i = 0; i < op.shape.rank; ++i) row.set(kLayout + i, op.shape.rank - 1 - i);
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
