#pragma once

#include <cstdint>

#include "models/kernels/aggregate.hpp"

namespace tpudist {

// The rows of a plan layer by the group in which they are normalised or gated together (RowGroups),
// in the memory of the current CUDA device. Every row is in one group.
struct GroupPointers {
  CsrPointers rows;                      // the rows of each group; no weights
  const std::int32_t* of_row = nullptr;  // [row_count] the group of each row
  const float* count = nullptr;          // [row_count] multiplicity of a row in its group
  const double* size = nullptr;          // [groups] sum of the counts
  std::int64_t row_count = 0;
};

// The following is as in aggregate.hpp; T is float or double, and all planes are [row_count,
// width] unless stated otherwise. Sums over a group are in double and in the order of its rows, or
// of its chunks, whose sums are kept in `parts`.

// The mean of every channel and 1 / sqrt(mean of (x - shift * mean)^2 + eps), in two passes over
// each group: `mean` and `scale` are [groups, width]. A null `shift` [width] means 1.
template <typename T>
void launch_group_statistics(const GroupPointers& groups, Columns columns, Planes<const T> x,
                             Planes<const T> shift, double eps, Planes<double> mean,
                             Planes<double> scale, Planes<double> parts, CUstream_st* stream);

// y = (x - shift * mean) * scale with the statistics of each row's group.
template <typename T>
void launch_normalise(const GroupPointers& groups, Columns columns, Planes<const T> x,
                      Planes<const T> shift, Planes<const double> mean, Planes<const double> scale,
                      Planes<T> y, CUstream_st* stream);

// The first half of the backward pass of both: the terms common to all rows of a group, `along` and
// `constant`, and the group's part of d loss / d shift (null: not wanted). All three are [groups,
// width] in double.
struct NormGradient {
  Planes<double> along, constant, shift;
};
template <typename T>
void launch_norm_sums(const GroupPointers& groups, Columns columns, Planes<const T> x,
                      Planes<const T> d_y, Planes<const T> shift, Planes<const double> mean,
                      Planes<const double> scale, const NormGradient& gradient,
                      Planes<double> parts, CUstream_st* stream);
// The second half: d_x = scale * d_y - count * (along * (x - shift * mean) + constant).
template <typename T>
void launch_norm_gradient(const GroupPointers& groups, Columns columns, Planes<const T> x,
                          Planes<const T> d_y, Planes<const T> shift, Planes<const double> mean,
                          Planes<const double> scale, const NormGradient& gradient, Planes<T> d_x,
                          CUstream_st* stream);

// The softmax over each group of x / temperature; every row counts with its multiplicity. A
// member's plane of `temperature` is one number. `top` and `sum` are [groups, width]: the x of the
// largest logit, and the sum of exp(logit - largest logit).
template <typename T>
void launch_softmax_sums(const GroupPointers& groups, Columns columns, Planes<const T> x,
                         Planes<const T> temperature, Planes<T> top, Planes<double> sum,
                         Planes<double> parts, CUstream_st* stream);
// share = the softmax from these sums, and y = x * share.
template <typename T>
void launch_softmax_gate(const GroupPointers& groups, Columns columns, Planes<const T> x,
                         Planes<const T> temperature, Planes<const T> top, Planes<const double> sum,
                         Planes<T> share, Planes<T> y, CUstream_st* stream);

// The backward pass of y in two halves. The first computes the sum of share * d_y * x over each
// group and the group's part of d loss / d temperature, both [groups, width].
template <typename T>
void launch_softmax_gradient_sums(const GroupPointers& groups, Columns columns, Planes<const T> x,
                                  Planes<const T> share, Planes<const T> d_y,
                                  Planes<const T> temperature, Planes<double> whole,
                                  Planes<double> d_temperature, Planes<double> parts,
                                  CUstream_st* stream);
template <typename T>
void launch_softmax_gradient(const GroupPointers& groups, Columns columns, Planes<const T> x,
                             Planes<const T> share, Planes<const T> d_y,
                             Planes<const T> temperature, Planes<const double> whole, Planes<T> d_x,
                             CUstream_st* stream);

}  // namespace tpudist
