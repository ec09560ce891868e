#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/inputs/unit_input.hpp"
#include "models/network/network.hpp"

namespace tpudist::test {

// The common divisor of the weights of one row of a plan: the smallest number whose products with
// all weights are integers, up to the rounding of float32 (2^-24). Weights are count / degree, or
// count / nodes.
inline std::int64_t divisor_of(std::span<const float> weights) {
  constexpr std::int64_t kLargest = 1 << 20;
  const auto counts = [](double value) {
    const double count = std::round(value);
    return count >= 1 && std::abs(value - count) <= 1e-7 * count;
  };
  for (std::int64_t divisor = 1; divisor <= kLargest; ++divisor) {
    const auto d = static_cast<double>(divisor);
    if (std::ranges::all_of(weights, [&](float weight) { return counts(weight * d); })) {
      return divisor;
    }
  }
  throw std::runtime_error("a plan's weights are no counts over a divisor");
}

// The first `rows` rows of a plan's sparse matrix, with exact rationals in place of float32 values,
// for [., replicas] rows. Differentiable.
class ExactMatrix {
 public:
  ExactMatrix(const Csr& csr, std::int64_t rows, std::int64_t replicas = 1)
      : rows_(rows * replicas) {
    std::vector<std::int64_t> row, source;
    std::vector<double> weight;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t begin = csr.begin[i], end = csr.begin[i + 1];
      const bool weighted = !csr.weight.empty() && end > begin;
      const auto own =
          weighted ? std::span(csr.weight).subspan(begin, end - begin) : std::span<const float>();
      const auto divisor = static_cast<double>(weighted ? divisor_of(own) : 1);
      for (std::int64_t e = begin; e < end; ++e) {
        const double value = weighted ? std::round(csr.weight[e] * divisor) / divisor : 1.0;
        for (std::int64_t replica = 0; replica < replicas; ++replica) {
          row.push_back(i * replicas + replica);
          source.push_back(csr.source[e] * replicas + replica);
          weight.push_back(value);
        }
      }
    }
    row_ = at::tensor(row, at::kLong);
    source_ = at::tensor(source, at::kLong);
    weight_ = at::tensor(weight, at::kDouble).unsqueeze(1);
  }

  at::Tensor operator()(const at::Tensor& x) const {
    return at::zeros({rows_, x.size(1)}, at::kDouble)
        .index_add(0, row_, x.index_select(0, source_) * weight_);
  }

  // The largest of each row's sources, each repeated `weight` times; 0 without sources.
  at::Tensor max(const at::Tensor& x) const {
    const at::Tensor copies = weight_.squeeze(1).to(at::kLong);
    const at::Tensor row = row_.repeat_interleave(copies),
                     taken = x.index_select(0, source_.repeat_interleave(copies));
    // scatter_reduce's gradient counts a start value that equals the maximum as one more maximum.
    constexpr double kBelowAll = -1e30;
    const at::Tensor largest =
        at::full({rows_, x.size(1)}, kBelowAll, at::kDouble)
            .scatter_reduce(0, row.unsqueeze(1).expand_as(taken), taken, "amax", false);
    return at::where(largest > kBelowAll, largest, 0.0);
  }

 private:
  std::int64_t rows_;
  at::Tensor row_, source_, weight_;
};

// The network on a plan in plain LibTorch with autograd, in double. Without the rounding of
// float32, two plans of the same slates can be compared.
class PlanAutograd {
 public:
  // `needed`: only the rows that the differences between a slate's scores depend on.
  enum class Rows { all, needed };

  struct Scores {
    at::Tensor delta;   // [configs]
    at::Tensor common;  // [configs] the part that a slate's configurations share; 0 for `needed`
  };

  PlanAutograd(const Network& network, std::span<const float> member) : network_(network) {
    for (const ParameterEntry& entry : network.parameters().entries()) {
      const at::Tensor values =
          at::from_blob(const_cast<float*>(member.data()) + entry.offset, entry.shape, at::kFloat);
      parameters_[entry.name] = values.to(at::kDouble).clone().requires_grad_();
    }
  }

  Scores scores(const UnitInput& unit, Rows rows = Rows::all) const {
    const Plan& plan = *unit.plan;
    const bool needed = rows == Rows::needed;
    at::Tensor x = encode(unit, needed ? plan.needed_first_rows : plan.first_rows());
    for (std::size_t i = 0; i < plan.layers.size(); ++i) x = advance(plan, i, x, needed);
    const at::Tensor values = at::mm(x, p("head.weight")) + p("head.bias");
    const Readout& readout = plan.readout;
    const ExactMatrix cells(readout.cells.forward, readout.cells.forward.rows());
    const ExactMatrix sum_cells(readout.scores.forward, plan.configs);
    const double scale = network_.config().output_scale;
    Scores scores{scale * sum_cells(cells(values)).squeeze(1),
                  at::zeros({plan.configs}, at::kDouble)};
    if (!needed) {
      const at::Tensor common =
          ExactMatrix(readout.common.forward, readout.common.forward.rows())(values);
      scores.common =
          scale * common.squeeze(1).index_select(0, indices(readout.slate_of_config, plan.configs));
    }
    return scores;
  }

  // d sum(score * weight) / d parameters, flat [P], padding zero.
  std::vector<double> gradient(const UnitInput& unit, std::span<const double> weights,
                               Rows rows = Rows::all) {
    for (auto& [name, value] : parameters_) value.mutable_grad() = at::Tensor();
    const Scores made = scores(unit, rows);
    const at::Tensor weight = at::tensor(at::ArrayRef<double>(weights.data(), weights.size()));
    ((made.delta + made.common) * weight).sum().backward();
    std::vector<double> flat(network_.parameters().length(), 0.0);
    for (const ParameterEntry& entry : network_.parameters().entries()) {
      const at::Tensor own = parameters_.at(entry.name).grad();
      if (!own.defined()) continue;
      std::copy_n(own.contiguous().const_data_ptr<double>(), entry.size(),
                  flat.begin() + entry.offset);
    }
    return flat;
  }

 private:
  const at::Tensor& p(const std::string& name) const { return parameters_.at(name); }

  static at::Tensor indices(const std::vector<std::int32_t>& of, std::int64_t count) {
    return at::tensor(at::ArrayRef<std::int32_t>(of.data(), count), at::kLong);
  }

  static at::Tensor wide(const float* values, std::int64_t rows, std::int64_t stride) {
    return at::from_blob(const_cast<float*>(values), {rows, stride}, at::kFloat).to(at::kDouble);
  }

  static at::Tensor select(const GatherIndex& gather, const at::Tensor& x, std::int64_t rows) {
    return gather.is_identity() ? x.narrow(0, 0, rows)
                                : x.index_select(0, indices(gather.index, rows));
  }

  // The first `rows` rows before the first layer.
  at::Tensor encode(const UnitInput& unit, std::int64_t rows) const {
    std::vector<at::Tensor> features;
    std::vector<std::int32_t> opcodes;
    for (const auto& graph : unit.graphs) {
      features.push_back(
          wide(graph->feature_rows(), graph->nodes(), graph->stride()).narrow(1, 0, kNodeFeatures));
      opcodes.insert(opcodes.end(), graph->opcode().begin(), graph->opcode().end());
    }
    const at::Tensor opcode =
        p("encoder.opcode.weight").index_select(0, indices(opcodes, opcodes.size()));
    const at::Tensor node =
        at::mm(at::cat(features), p("encoder.node.weight")) + p("encoder.node.bias");
    // A row of zeros after the states, for nodes without one.
    const std::int64_t states = unit.plan->states, width = network_.schema().config_features;
    const at::Tensor table =
        at::cat({wide(unit.states.data(), states, width), at::zeros({1, width}, at::kDouble)});
    const at::Tensor state = indices(unit.plan->state, rows);
    const at::Tensor columns =
        at::cat({at::cat({opcode, node}, 1).index_select(0, indices(unit.plan->node, rows)),
                 table.index_select(0, at::where(state < 0, states, state))},
                1);
    return at::relu(at::mm(columns, p("encoder.join.weight")) + p("encoder.join.bias"));
  }

  at::Tensor advance(const Plan& plan, std::size_t index, const at::Tensor& x, bool needed) const {
    const PlanLayer& plan_layer = *plan.layers[index];
    const NeededCounts& part = plan.needed_counts[index];
    const SageConfig layer = network_.config().sage_layers()[index];
    const std::string prefix = "blocks." + std::to_string(index) + ".sage.";
    const std::int64_t rows = needed ? part.rows : plan_layer.rows_out;
    const at::Tensor own = select(plan_layer.self, x, rows);
    at::Tensor out = at::mm(own, p(prefix + "self.weight"));
    out = out + p(prefix + (plan_layer.edges.empty() ? "self.bias" : "neighbours.bias"));
    for (std::size_t d = 0; d < plan_layer.edges.size(); ++d) {
      const EdgeSet& edges = plan_layer.edges[d];
      const std::int64_t replicas = edges.aggregate.replicas;
      const std::int64_t count =
          needed ? part.neighbourhoods[d] / replicas : edges.aggregate.forward.rows();
      const ExactMatrix matrix(edges.aggregate.forward, count, replicas);
      const at::Tensor sums = layer.mix.aggregation == Aggregation::max ? matrix.max(x) : matrix(x);
      const std::string name = d ? "neighbours_" + std::to_string(d) : "neighbours";
      out = out + at::mm(select(edges.neighbourhood, sums, rows), p(prefix + name + ".weight"));
    }
    if (layer.residual && out.size(1) == x.size(1)) out = out + own;
    return layer.activation == Activation::relu ? at::relu(out) : out;
  }

  const Network& network_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace tpudist::test
