#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/operators/backend.hpp"
#include "models/operators/plan_views.hpp"
#include "models/plans/plan.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Returns x W + b for each member: `x` [M, R, I], `weight` [M, I, O], `bias` [M, O] or undefined,
// all float32 or all double; the result is [M, R, O]. Differentiable. On the CPU blocks of rows are
// tasks of the pool. The gradients of weight and bias are partial sums over fixed chunks of rows,
// added in order, so the bits do not depend on the number of threads. A member's result does not
// depend on the others. Throws Error for shapes that do not fit.
at::Tensor linear_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       const Backend& backend);

// Returns factor_r b for each member and row: `bias` [M, 1], `factors` [R], both double; the result
// is [M, R]. Differentiable in the bias, whose gradient is summed in the same order for any M.
at::Tensor scaled_bias(const at::Tensor& bias, const at::Tensor& factors, const Backend& backend);

// Applies a row-wise function to inputs [M, rows, C_i] with equal numbers of rows (at least one),
// member by member and block by block, in the threads of the pool. An input may have one plane for
// all members; parameters are [M, ...]. Differentiable. The backward pass keeps only the inputs and
// runs each block again with its own autograd graph. The gradients of parameters are partial sums
// over fixed chunks of rows, added in order. The bits do not depend on the number of threads. On a
// device it is one call on all rows of a member, or of all joined units, and autograd records its
// operations.
at::Tensor map_rows(const RowFunction& function, const std::vector<at::Tensor>& rows,
                    const std::vector<at::Tensor>& parameters, const Backend& backend);

// A function that writes a result of `channels`, with a handwritten `gradient`: the backward pass
// does not run the function again. On a device it is one call on all members.
at::Tensor map_rows(const RowWriter& function, const RowGradient& gradient,
                    const std::vector<at::Tensor>& rows, std::int64_t channels,
                    const Backend& backend);

// The sums over the last dimension of x, which stays with size 1; not differentiable. On the CPU they
// are added in double, in one order on every CPU.
at::Tensor row_sums(const at::Tensor& x);

// Differentiable: the square roots. On CPUs of Intel LibTorch takes at::sqrt from MKL, which may miss
// the nearest number by one; rounded from double to float32, every CPU gets the nearest.
at::Tensor roots(const at::Tensor& x);

// Differentiable: the sums over the last dimension, which stays with size 1, and the reverse, a last
// dimension of size 1 repeated `channels` times. LibTorch's own broadcasts give sums as gradients
// whose bits depend on the CPU.
at::Tensor sum_channels(const at::Tensor& x);
at::Tensor repeat_channels(const at::Tensor& x, std::int64_t channels);

// Replaces x, [M, rows, C] or a contiguous matrix, by exp(x); not differentiable. In float32 on the
// CPU by exp_values().
void exponentiate(at::Tensor& x);

// Concatenates the channels of tensors with equal numbers of rows: [M, rows, C_1 + C_2 + ...].
at::Tensor join_channels(const std::vector<at::Tensor>& rows, const Backend& backend);

// Returns x [M, rows, C], float32 or double, `count` times: once for each of its uses. The
// gradients of the uses are added in this order, block by block in the threads of the pool.
// Autograd alone would add them in a single thread, which matters only on the CPU. The backend must
// outlive the recorded graph.
std::vector<at::Tensor> split_uses(const at::Tensor& x, int count, const Backend& backend);

// Operators whose rows are taken from, or aggregated over, other rows of a plan. Tensors are [M,
// rows, C], float32 or double. All are differentiable.
// Their backward passes gather by the transposed matrices, without atomics, in the order of the
// entries. On the CPU blocks of rows are tasks of the pool, and the bits do not depend on the
// number of threads. Plan, pool and device must outlive the graph that the calls record.

// y[i] = x[index[i]]
at::Tensor gather_rows(const at::Tensor& x, const GatherView& index, const Backend& backend);

// One term of sum_of_gathered.
struct GatheredTerm {
  at::Tensor x;
  GatherView index;
};
// y[i] = the sum over the terms of x[index[i]], added in their order. All terms have equally many
// rows.
at::Tensor sum_of_gathered(const std::vector<GatheredTerm>& terms, const Backend& backend);

// y[n] = the aggregation of the rows of neighbourhood n. The weights of the matrix must be
// multiplicities (LayerShape::aggregation sum or max); the mean divides by their sum. Equal largest
// rows share the gradient of a maximum in proportion to their multiplicities. An empty
// neighbourhood gives 0.
at::Tensor aggregate_rows(const SparseMatrix& matrix, const at::Tensor& x, Aggregation aggregation,
                          const Backend& backend);

// Pools the rows after the last layer over the nodes of every configuration. x is [M, rows, C],
// float32 or double. The result is [M, configurations, C] in double, so that sums over thousands of
// nodes do not hide the differences between configurations. The weights of the readout must be
// multiplicities (PlanShape::mean_readout false); the mean divides by the number of nodes. Equal
// largest rows share the gradient of a maximum in proportion to the nodes that they represent.
// Differentiable. Sums have a fixed order. Readout, pool and device must outlive the recorded
// graph.
at::Tensor pool_rows(const at::Tensor& x, const Readout& readout, Aggregation aggregation,
                     const Backend& backend);

// Returns, for each configuration, the sum over its nodes of the value of each node's row. `values`
// [rows]; the result is [configurations].
std::vector<double> config_sums(const Readout& readout, const std::vector<double>& values);
// Returns the number of nodes of each configuration, left-out ones included. [configurations]
std::vector<double> node_counts(const Readout& readout);

// Normalises every channel over the rows of each group. With the mean m and o = x - shift * m,
// where `shift` [M, C] counts as 1 where it is undefined,
//
//     y = o / sqrt(mean of o^2 + eps)
//
// This is InstanceNorm (Ulyanov et al. 2016, arXiv 1607.08022) over the nodes of a configuration.
// With a learned shift it is the inner part of GraphNorm (Cai et al. 2021, arXiv 2009.03294). Means
// count a row as often as it stands in its group. They are summed in double, in two passes. x and y
// are [M, rows, C], float32 or double. A group of one row gives 0 where the shift is 1.
// Differentiable. On the CPU groups are tasks of the pool. `groups`, pool and device must outlive
// the recorded graph.
at::Tensor normalise_groups(const at::Tensor& x, const at::Tensor& shift, double eps,
                            const RowGroups& groups, const Backend& backend);

// Cross-configuration attention of the 1st place of "Fast or Slow?". For each channel
//
//     y = [x, x * softmax(x / temperature)]
//
// where the softmax runs over the rows of a group, and a row counts as often as it stands there. x
// is [M, rows, C], y [M, rows, 2 C], `temperature` [M], all float32 or all double; sums are in
// double. Differentiable in both. On the CPU groups are tasks of the pool. `groups`, pool and
// device must outlive the recorded graph.
at::Tensor softmax_gate(const at::Tensor& x, const at::Tensor& temperature, const RowGroups& groups,
                        const Backend& backend);

// Dropout whose draw depends on what a row represents and not on where it lies. With
// Dropped::channels each channel of a row is kept with probability 1 - rate and divided by that
// probability. With Dropped::rows a whole row is kept unchanged with that probability. The draw is
// a pure function (Philox4x32-10, Salmon et al. 2011) of the member's key, `layer`, the channel and
// the row's key. So equal rows of dense, refined and chunked plans drop the same elements. x is
// [M, rows, C]; `member_keys` [M], `row_keys` [rows]; 0 <= rate < 1, exact to 2^-16.
// Differentiable. `row_keys` must outlive the recorded graph.
at::Tensor drop_rows(const at::Tensor& x, Dropped dropped, double rate,
                     std::span<const std::uint64_t> member_keys, std::uint32_t layer,
                     std::span<const std::uint64_t> row_keys, const Backend& backend);

}  // namespace tpudist
