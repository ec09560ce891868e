#include "models/executors/aten_pass.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "models/inputs/graph_input.hpp"

namespace tpudist {

// One member's parameters or gradient [P] on the device.
struct AtenPass::FlatView {
  at::Tensor flat;
  at::Tensor vector(std::int64_t offset, std::int64_t n) const { return flat.narrow(0, offset, n); }
  at::Tensor matrix(std::int64_t offset, std::int64_t k, std::int64_t n) const {
    return flat.narrow(0, offset, k * n).view({k, n});
  }
};

namespace {

// Aggregates the rows x into neighbourhoods, for a product with operands of `type`. Maxima stay
// float32, because their gradient goes by which rows equal them.
at::Tensor aggregate(const LayerLayout& layer, const DeviceSparseMatrix& matrix,
                     const at::Tensor& x, at::ScalarType type) {
  return layer.max ? spmm_max(matrix.forward, matrix.replicas, x)
                   : spmm(matrix.forward, matrix.replicas, x, type);
}

// d loss / d x from the gradient of what `aggregate` returned.
at::Tensor aggregate_gradient(const LayerLayout& layer, const DeviceSparseMatrix& matrix,
                              const at::Tensor& x, const at::Tensor& aggregated,
                              const at::Tensor& gradient) {
  return layer.max ? spmm_max_backward(matrix, x, aggregated, gradient)
                   : spmm(matrix.transposed, matrix.replicas, gradient);
}

}  // namespace

at::ScalarType AtenPass::operand_type() const {
  return net_.precision == Precision::fp32 ? at::kFloat : at::kBFloat16;
}

// a b with operands of the network's precision (they may have it already), summed up in float32.
at::Tensor AtenPass::multiply(const at::Tensor& a, const at::Tensor& b) const {
  if (net_.precision == Precision::fp32) return at::mm(a, b);
  const at::Tensor left = a.to(operand_type()), right = b.to(operand_type());
  if (device_.is_cuda()) return at::mm(left, right, at::kFloat);
  return at::mm(left.to(at::kFloat), right.to(at::kFloat));  // the CPU's would round the result too
}

// bias + a b
at::Tensor AtenPass::multiply_add(const at::Tensor& bias, const at::Tensor& a,
                                  const at::Tensor& b) const {
  if (net_.precision == Precision::fp32) return at::addmm(bias, a, b);
  return multiply(a, b).add_(bias);
}

Tape AtenPass::forward(const at::Tensor& flat, const DeviceUnit& unit) const {
  const FlatView w{flat};
  Tape tape;
  const std::int64_t columns = net_.opcode_width + net_.node_width;
  const at::Tensor opcode =
      at::index_select(w.matrix(net_.opcode_weight, kOpcodes, net_.opcode_width), 0, unit.opcode);
  const at::Tensor node = multiply_add(w.vector(net_.node_bias, net_.node_width), unit.features,
                                       w.matrix(net_.node_weight, kNodeFeatures, net_.node_width));
  tape.node_input = at::cat({opcode, node}, 1);
  const at::Tensor nodes = multiply_add(w.vector(net_.join_bias, net_.width), tape.node_input,
                                        w.matrix(net_.join_weight, columns, net_.width));
  const at::Tensor states =
      multiply(unit.states, w.matrix(net_.join_config, net_.config_features, net_.width));
  tape.x.push_back(
      at::relu(at::index_select(nodes, 0, unit.node) + at::index_select(states, 0, unit.state)));
  for (std::size_t i = 0; i < net_.layers.size(); ++i) {
    const LayerLayout& layer = net_.layers[i];
    const DeviceLayer& plan_layer = *unit.layers[i];
    const at::Tensor& x = tape.x[i];
    const auto weight = [&](std::size_t p) {
      return w.matrix(layer.weights[p].offset, layer.in, layer.out);
    };
    const std::size_t sets = plan_layer.edges.size();
    at::Tensor out =
        gather(plan_layer.self, multiply_add(w.vector(layer.bias, layer.out), x, weight(sets)));
    for (std::size_t set = 0; set < sets; ++set) {
      const at::Tensor sums = aggregate(layer, plan_layer.edges[set].aggregate, x, operand_type());
      out = out + gather(plan_layer.edges[set].neighbourhood, multiply(sums, weight(set)));
    }
    if (layer.residual) out = out + gather(plan_layer.self, x);
    tape.x.push_back(layer.relu ? at::relu(out) : out);
  }
  const at::Tensor head = w.vector(net_.head_weight, net_.layers.back().out).to(at::kDouble);
  const at::Tensor bias = w.vector(net_.head_bias, 1).to(at::kDouble);
  tape.values = at::mv(tape.x.back().to(at::kDouble), head) + bias;
  return tape;
}

at::Tensor AtenPass::backward(const at::Tensor& flat, const DeviceUnit& unit, const Tape& tape,
                              const at::Tensor& row_gradient, bool needed) const {
  const FlatView w{flat};
  const FlatView g{at::zeros({net_.table.length()}, at::TensorOptions(at::kFloat).device(device_))};
  const at::Tensor& top = tape.x.back();
  g.vector(net_.head_weight, top.size(1)).copy_(at::mv(top.t(), row_gradient));
  g.vector(net_.head_bias, 1).copy_(row_gradient.sum().view({1}));
  at::Tensor z = at::outer(row_gradient, w.vector(net_.head_weight, top.size(1)));
  for (std::size_t i = net_.layers.size(); i-- > 0;) {
    const LayerLayout& layer = net_.layers[i];
    const DeviceLayer& plan_layer = *unit.layers[i];
    const at::Tensor& x = tape.x[i];
    if (layer.relu) z = z * (tape.x[i + 1] > 0);
    const auto back = [&](std::size_t p, const at::Tensor& product, const at::Tensor& input) {
      const std::int64_t offset = layer.weights[p].offset;
      const at::Tensor rounded = product.to(operand_type());
      g.matrix(offset, layer.in, layer.out).copy_(multiply(input.t(), rounded));
      return multiply(rounded, w.matrix(offset, layer.in, layer.out).t());
    };
    const std::int64_t rows = needed ? unit.needed_rows(i) : x.size(0);
    const at::Tensor own = gather_backward(plan_layer.self, z).narrow(0, 0, rows);
    g.vector(layer.bias, layer.out).copy_(own.sum(0));
    at::Tensor below = at::zeros_like(x);
    at::Tensor used = below.narrow(0, 0, rows);
    used.copy_(back(plan_layer.edges.size(), own, x.narrow(0, 0, rows)));
    if (layer.residual) used.add_(own);
    for (std::size_t set = 0; set < plan_layer.edges.size(); ++set) {
      const DeviceEdgeSet& edges = plan_layer.edges[set];
      const at::Tensor sums = aggregate(layer, edges.aggregate, x, operand_type());
      const std::int64_t count = needed ? unit.needed_counts[i].neighbourhoods[set] : sums.size(0);
      at::Tensor of_sums = at::zeros(sums.sizes(), x.options());
      of_sums.narrow(0, 0, count)
          .copy_(back(set,
                      gather_backward(edges.neighbourhood, z, operand_type()).narrow(0, 0, count),
                      sums.narrow(0, 0, count)));
      used.add_(aggregate_gradient(layer, edges.aggregate, x, sums, of_sums).narrow(0, 0, rows));
    }
    z = below;
  }
  backward_encoder(w, g, unit, tape, z * (tape.x[0] > 0));
  return g.flat;
}

void AtenPass::backward_encoder(const FlatView& w, const FlatView& g, const DeviceUnit& unit,
                                const Tape& tape, const at::Tensor& z) const {
  const std::int64_t columns = net_.opcode_width + net_.node_width,
                     states = unit.states.size(0) - 1;
  const at::Tensor of_state = spmm(unit.rows_of_state, 1, z, operand_type());
  g.matrix(net_.join_config, net_.config_features, net_.width)
      .copy_(multiply(unit.states.narrow(0, 0, states).t(), of_state));
  const at::Tensor of_node = spmm(unit.rows_of_node, 1, z);
  g.vector(net_.join_bias, net_.width).copy_(of_node.sum(0));
  g.matrix(net_.join_weight, columns, net_.width).copy_(multiply(tape.node_input.t(), of_node));
  const at::Tensor of_input =
      multiply(of_node, w.matrix(net_.join_weight, columns, net_.width).t());
  const at::Tensor node = of_input.narrow(1, net_.opcode_width, net_.node_width);
  g.vector(net_.node_bias, net_.node_width).copy_(node.sum(0));
  g.matrix(net_.node_weight, kNodeFeatures, net_.node_width)
      .copy_(multiply(unit.features.t(), node));
  g.matrix(net_.opcode_weight, kOpcodes, net_.opcode_width)
      .copy_(spmm(unit.nodes_of_opcode, 1, of_input.narrow(1, 0, net_.opcode_width)));
}

}  // namespace tpudist
