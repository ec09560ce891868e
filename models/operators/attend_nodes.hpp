#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/operators/backend.hpp"
#include "models/plans/plan.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Rows of the plan, group by group.
struct GroupedRows {
  std::int64_t count(std::int64_t group) const { return begin[group + 1] - begin[group]; }

  std::vector<std::int64_t> begin{0};  // [groups + 1] into `rows`
  at::Tensor rows;                     // [..] int64
  // Made by NodeAttention::tensors(), int64: `begin`; the group of each row [..]; its place there.
  at::Tensor begins, group, place;
  Csr of_plan;  // likewise, [rows of the plan] <- `rows`
  std::int64_t plan_rows = 0;
};

// Which rows attend to which, in a plan layer whose first edge set joins all nodes of a
// configuration and whose other sets run along the edges of the graph. A group is a configuration:
// the rows of its nodes after the layer, and the rows before the layer, each with its number of
// nodes. A pair is a row after and a row before that edges connect.
struct NodeAttention {
  // `others`: the weight of two nodes without an edge between them. Each edge adds 1 - others.
  // `dtype`: of the rows. Throws Error for a layer of another shape.
  NodeAttention(const PlanLayer& layer, double others, at::ScalarType dtype);

  std::int64_t groups() const { return static_cast<std::int64_t>(after.begin.size()) - 1; }

  // Makes what only operators on a device need, and returns all tensors that they need. For
  // DeviceArrays::add.
  std::vector<at::Tensor*> tensors();

  GroupedRows after, before;
  at::Tensor weight;  // [rows before] others x the number of nodes that the row represents
  std::vector<std::int64_t> pair_begin{0};  // [groups + 1] into the tensors of pairs
  // [..] a pair's position in its group's matrix [rows after, rows before]; what its edges add.
  at::Tensor place, added;
  // Made by tensors(): the group of a pair, and its row and column in the group's matrix.
  at::Tensor pair_group, pair_row, pair_column;
  // Most numbers of one operation on several groups (models/device/padded_attention.cpp).
  std::int64_t padded_floats = std::int64_t{1} << 24;
  std::vector<std::int64_t> rows_of_pairs;  // [..] the row after in its group, ascending
  bool merged = false;                      // some row before represents several nodes of a group
  bool apart = true;                        // no row before is in two groups
};

// Attention of the nodes of a configuration to all of them, head by head:
//
//     y_i = sum over j of w_ij e_ij v_j / sum over j of w_ij e_ij,  e_ij = exp(q_i . k_j / sqrt(A))
//
// q is [M, rows after, H x A], k [M, rows before, H x A], v [M, rows before, H x B] and y [M, rows
// after, H x B], float32 or double. Differentiable; the backward pass computes the shares again.
// Takes memory for 256 rows after and the rows before of a group at a time, on a device for
// padded_floats shares. On the CPU heads and groups are tasks of the pool, heads alone in the
// backward pass. `attention` and the backend must outlive the recorded graph.
at::Tensor attend_nodes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const NodeAttention& attention, std::int64_t heads, const Backend& backend);

// Added to the sum of a row's weights in linear attention, as in the authors' code: the weights of
// large negative keys are 0.
inline constexpr double kLinearWeightEps = 1e-6;

// The same without a softmax: every node of a configuration counts alike, and e_ij is
// f(q_i) . f(k_j) with f(x) = elu(x) + 1. So two sums over the nodes serve all rows of a group:
//
//     y_i = s' f(q_i) / (z . f(q_i) + 1e-6),   s = sum_j f(k_j) v_j',   z = sum_j f(k_j)
//
// `attention` must have others = 1; its edges are not used. On the CPU s and z of each group are
// kept for the backward pass. Groups are tasks of the pool; in the backward pass heads are, if
// groups share rows.
at::Tensor attend_linearly(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const NodeAttention& attention, std::int64_t heads,
                           const Backend& backend);

}  // namespace tpudist
