#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist::test {

// A small network in double that runs on any plan, to compare plans:
// state' = tanh(A * own + sum over edge sets of B_d * aggregated), scalars per channel. Node and
// state embeddings are given per class, so that equal classes are equal inputs.
struct PlanNetwork {
  static constexpr int kChannels = 3;
  using Row = std::vector<double>;

  static double weight(int layer, int set, int from, int to) {
    return std::sin(1.0 + 7.3 * layer + 3.1 * set + 1.7 * from + 0.9 * to);
  }

  static std::vector<Row> multiply(const Csr& csr, const std::vector<Row>& x,
                                   std::int32_t replicas) {
    std::vector<Row> y(csr.rows() * replicas, Row(kChannels, 0.0));
    for (std::int64_t i = 0; i < csr.rows(); ++i) {
      for (std::int64_t e = csr.begin[i]; e < csr.begin[i + 1]; ++e) {
        for (std::int32_t replica = 0; replica < replicas; ++replica) {
          for (int c = 0; c < kChannels; ++c) {
            y[i * replicas + replica][c] +=
                csr.weight_of(e) * x[csr.source[e] * replicas + replica][c];
          }
        }
      }
    }
    return y;
  }

  // Keeps sums over whole graphs so small that tanh still separates them.
  static void damp(const Csr& csr, std::int32_t replicas, std::vector<Row>& y) {
    for (std::int64_t i = 0; i < csr.rows(); ++i) {
      double total = 1;
      for (std::int64_t e = csr.begin[i]; e < csr.begin[i + 1]; ++e) total += csr.weight_of(e);
      for (std::int32_t replica = 0; replica < replicas; ++replica) {
        for (double& value : y[i * replicas + replica]) value *= 2 / total;
      }
    }
  }

  static double state_term(std::span<const double> state_value, std::int32_t state) {
    return state < 0 ? 0.37 : state_value[state];
  }

  static void mix(const std::vector<Row>& x, int layer, int set, std::vector<Row>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (int to = 0; to < kChannels; ++to) {
        for (int from = 0; from < kChannels; ++from)
          y[i][to] += weight(layer, set, from, to) * x[i][from];
      }
    }
  }

  static std::vector<Row> select(const GatherIndex& gather, const std::vector<Row>& x,
                                 std::int64_t rows) {
    std::vector<Row> y;
    for (std::int64_t i = 0; i < rows; ++i) y.push_back(x[gather(i)]);
    return y;
  }

  // Scores of all configurations. `node_value` [plan.nodes], `state_value` [plan.states]: values
  // that distinguish rows. `needed_only`: overwrites rows that are not needed in every layer.
  static std::vector<double> scores(const Plan& plan, std::span<const double> node_value,
                                    std::span<const double> state_value, bool needed_only = false) {
    std::vector<Row> x;
    for (std::size_t i = 0; i < plan.node.size(); ++i) {
      const double state = state_term(state_value, plan.state[i]);
      Row row;
      for (int c = 0; c < kChannels; ++c)
        row.push_back(std::sin((c + 1) * node_value[plan.node[i]] + state * (c + 2)));
      x.push_back(row);
    }
    int layer = 0;
    const auto forget = [&](std::vector<Row>& rows) {
      for (std::size_t i = plan.needed_rows(layer); needed_only && i < rows.size(); ++i) {
        rows[i].assign(kChannels, 99.0);
      }
    };
    forget(x);
    for (const auto& plan_layer : plan.layers) {
      std::vector<Row> y(plan_layer->rows_out, Row(kChannels, 0.0));
      mix(select(plan_layer->self, x, plan_layer->rows_out), layer, 0, y);
      for (std::size_t d = 0; d < plan_layer->edges.size(); ++d) {
        const EdgeSet& edges = plan_layer->edges[d];
        auto sums = multiply(edges.aggregate.forward, x, edges.aggregate.replicas);
        damp(edges.aggregate.forward, edges.aggregate.replicas, sums);
        mix(select(edges.neighbourhood, sums, plan_layer->rows_out), layer, static_cast<int>(d) + 1,
            y);
      }
      for (std::size_t i = 0; i < plan_layer->state.size(); ++i) {
        for (int c = 0; c < kChannels; ++c)
          y[i][c] += std::cos((c + 1) * state_term(state_value, plan_layer->state[i]));
      }
      for (Row& row : y) {
        for (double& value : row) value = std::tanh(value);
      }
      x = std::move(y);
      ++layer;
      forget(x);
    }
    const auto pooled = multiply(plan.readout.scores.forward,
                                 multiply(plan.readout.cells.forward, x, 1), 1),
               common = multiply(plan.readout.common.forward, x, 1);
    std::vector<double> scores;
    for (std::int64_t k = 0; k < plan.configs; ++k) {
      const Row& shared = common[plan.readout.slate_of_config[k]];
      double score = 0;
      for (int c = 0; c < kChannels; ++c) score += (c + 1) * (pooled[k][c] + shared[c]);
      scores.push_back(score);
    }
    return scores;
  }
};

}  // namespace tpudist::test
