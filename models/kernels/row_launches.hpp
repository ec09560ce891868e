#pragma once

#include <cstdint>
#include <type_traits>

#include "core/philox.hpp"
#include "models/plans/row_run.hpp"

struct CUstream_st;

namespace tpudist {

// The arrays of LongRows in the memory of the current CUDA device, borrowed for a launch.
struct LongRowPointers {
  std::int64_t length = 0;
  const std::int64_t* chunk_begin = nullptr;  // [chunks]
  const std::int32_t* chunk_row = nullptr;    // [chunks]
  const std::int32_t* row = nullptr;          // [rows]
  const std::int64_t* begin = nullptr;        // [rows + 1]
  std::int64_t chunks = 0, rows = 0;
};

// The arrays of a Csr in the memory of the current CUDA device, borrowed for a launch.
struct CsrPointers {
  const std::int32_t* begin = nullptr;   // [rows + 1]
  const std::int32_t* source = nullptr;  // [entries]
  const float* weight = nullptr;         // [entries]; null when every weight is 1
  std::int64_t rows = 0;
  LongRowPointers long_rows = {};  // empty: no row is long, or all are summed in one step
};

// One matrix for each member of a call: that of member m begins m * distance numbers after `data`.
// A pointer alone is the matrix of one member.
template <typename T>
struct Planes {
  TPUDIST_ON_DEVICE Planes(T* data = nullptr, std::int64_t distance = 0)
      : data(data), distance(distance) {}
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  TPUDIST_ON_DEVICE Planes(const Planes<U>& planes)
      : data(planes.data), distance(planes.distance) {}
  TPUDIST_ON_DEVICE operator T*() const { return data; }
  T* data;
  std::int64_t distance;
};

// How long the rows of all matrices are, and how many members a call has.
struct Columns {
  Columns(std::int64_t width, std::int64_t members = 1) : width(width), members(members) {}
  std::int64_t width, members;
};

// The functions below, and all other launch_ functions of this folder, start kernels on `stream`
// of the current CUDA device and return at once. A member's matrix is dense, `width` numbers
// from row to row; replicas of a plan are additional columns. T is float or double. One thread adds
// the terms of a row in the order of its entries. Where rows are long, one thread adds up a chunk,
// and a second launch adds the chunks of each long row in their order. There are no atomics, so the
// bits are the same in every run and for every grid, and those of a row depend on nothing but its
// own entries. Output must not overlap input. They throw Error when the launch is refused.

// `parts` [2 * chunks of the matrix, width] for each member holds the sums between the two
// launches; only the call uses it. Not used if no row is long.

// y[i] = sum over e in [begin[i], begin[i + 1]) of weight[e] * x[source[e]], summed in the type of
// y. y is [matrix.rows, width].
void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const float> x,
                      Planes<float> y, Planes<float> parts, CUstream_st* stream);
void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const float> x,
                      Planes<double> y, Planes<double> parts, CUstream_st* stream);
void launch_aggregate(const CsrPointers& matrix, Columns columns, Planes<const double> x,
                      Planes<double> y, Planes<double> parts, CUstream_st* stream);

// The mean: y[i] as above, divided by total[i], and its backward pass by the transposed matrix: as
// above, with every x[source] divided by total[source] first. `total` holds for each row of the
// mean's matrix the sum of its weights, at least 1.
template <typename T>
void launch_mean(const CsrPointers& matrix, const float* total, Columns columns, Planes<const T> x,
                 Planes<T> y, Planes<T> parts, CUstream_st* stream);
template <typename T>
void launch_mean_gradient(const CsrPointers& transposed, const float* total, Columns columns,
                          Planes<const T> x, Planes<T> y, Planes<T> parts, CUstream_st* stream);

// y [width] = the sum of all rows of x [rows, width], by chunks of kSummedRows rows, these by
// chunks again, and so on. `parts` [summed_parts(rows), width] for each member.
inline constexpr std::int64_t kSummedRows = 128;
std::int64_t summed_parts(std::int64_t rows);
template <typename T>
void launch_sum_of_rows(std::int64_t rows, Columns columns, Planes<const T> x, Planes<T> y,
                        Planes<T> parts, CUstream_st* stream);

// best[i] = the largest x[source] over the entries of row i, channel by channel; 0 if the row has
// no entries, NaN if a source is NaN. Weights are ignored. best is [matrix.rows, width].
template <typename T>
void launch_max(const CsrPointers& matrix, Columns columns, Planes<const T> x, Planes<T> best,
                Planes<T> parts, CUstream_st* stream);

// The first half of the backward pass of the maximum: share[i] = gradient[i] / sum of the weights
// of those sources that equal best[i]; 0 if none does. All three are [matrix.rows, width].
template <typename T>
void launch_max_shares(const CsrPointers& matrix, Columns columns, Planes<const T> x,
                       Planes<const T> best, Planes<const T> gradient, Planes<T> share,
                       Planes<T> parts, CUstream_st* stream);

// The second half, by the transposed matrix: y[i] = sum of weight * share[source] over the entries
// of row i for which x[i] equals best[source]. y and x are [transposed.rows, width].
template <typename T>
void launch_max_gradient(const CsrPointers& transposed, Columns columns, Planes<const T> x,
                         Planes<const T> best, Planes<const T> share, Planes<T> y, Planes<T> parts,
                         CUstream_st* stream);

// Rows x[index[i]], or x[i] if `index` is null.
template <typename T>
struct TakenRows {
  const std::int32_t* index;
  Planes<const T> x;
};

// y[i] = the sum of the rows that `count` > 0 terms take for i, added in their order. y is [rows,
// width] for each member, T float or double.
template <typename T>
void launch_take(const TakenRows<T>* terms, int count, std::int64_t rows, Columns columns,
                 Planes<T> y, CUstream_st* stream);

// The gradient of x W + b with respect to W and b, for rows on a device; launches as
// launch_aggregate does. y is x^T d_y [in, out]; with `bias` [in + 1, out], its last row the sum of
// the rows of d_y. x is [rows, in], d_y [rows, out], all dense. A thread adds the rows of a chunk
// in their order, each product and sum with one rounding (no other kernel contracts). A second
// launch adds the chunks in order. Chunks depend on rows and widths alone.
struct WeightGradientSizes {
  std::int64_t rows, in, out;
  bool bias;
  bool whole = false;  // one chunk: rows of zeros after the others then change no bit

  // Numbers of y.
  TPUDIST_ON_DEVICE std::int64_t numbers() const { return (in + (bias ? 1 : 0)) * out; }
  TPUDIST_ON_DEVICE std::int64_t chunk_rows() const;
  TPUDIST_ON_DEVICE std::int64_t chunks() const;  // at least 1
};
// The runs of rows that have a sum of their own each: result i is that of run i % count in plane
// i / count of the operands. Null `runs`: result i is that of all rows of plane i.
struct RowRuns {
  const RowRun* runs = nullptr;  // [count], in the memory of the current CUDA device
  std::int64_t count = 1;
  // A weight gradient of more products (rows x in x out) is not written, but for the bias.
  std::int64_t most_products = INT64_MAX;
};
// `chunks`: the most that a result has. `parts` [chunks, numbers()] for each result; not used where
// `chunks` is 1. sizes.rows: of the longest run.
void launch_weight_gradient(const WeightGradientSizes& sizes, std::int64_t chunks,
                            std::int64_t results, const RowRuns& runs, Planes<const float> x,
                            Planes<const float> d_y, Planes<float> y, Planes<float> parts,
                            CUstream_st* stream);

// A matrix of double for each member: element (i, j) of the first is data[i * row + j * column].
struct StridedPlanes {
  Planes<const double> planes;
  std::int64_t row, column;
};
// y = a b, a [rows, inner], b [inner, columns.width] and y dense. One thread adds the products of
// an element in their order. For small products: heads and tests. With `runs` each y is the product
// of the columns of a and the rows of b that are in its run.
void launch_double_product(std::int64_t rows, std::int64_t inner, Columns columns, StridedPlanes a,
                           StridedPlanes b, Planes<double> y, CUstream_st* stream,
                           const RowRuns& runs = {});

// Dropout by Philox4x32-10 with the same masks, bit for bit, as drop_rows
// (models/operators/operators.hpp). x and y are [rows, channels] for each member, T float or
// double. `whole_rows`: Dropped::rows. `row_keys` [rows] is device memory. `member_keys` [members]
// is host memory and may change after the call has returned. One launch for each member.
template <typename T>
void launch_drop(bool whole_rows, std::int64_t rows, Columns columns, double rate,
                 const std::uint64_t* member_keys, std::uint32_t layer,
                 const std::uint64_t* row_keys, Planes<const T> x, Planes<T> y,
                 CUstream_st* stream);

// The rows of a plan layer by the group in which they are normalised or gated together (RowGroups),
// in the memory of the current CUDA device. Every row is in one group.
struct GroupPointers {
  CsrPointers rows;                      // the rows of each group; no weights
  const std::int32_t* of_row = nullptr;  // [row_count] the group of each row
  const float* count = nullptr;          // [row_count] multiplicity of a row in its group
  const double* size = nullptr;          // [groups] sum of the counts
  std::int64_t row_count = 0;
  // [groups] the run of a group in a joined plan. Its shift or temperature is that of the run in
  // the plane: [runs, width], or [runs]. Null: all groups have the only one.
  const std::int32_t* run = nullptr;

  TPUDIST_ON_DEVICE std::int64_t run_of(std::int64_t group) const { return run ? run[group] : 0; }
};

// In the functions on groups all planes are [row_count, width] unless stated otherwise. Sums over a
// group are in double, in the order of its rows or its chunks, whose sums are kept in `parts`.

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

// A Readout in the memory of the current CUDA device. The cells of a plan are summed once for all
// configurations of a class, and common rows once for a slate.
struct ReadoutPointers {
  CsrPointers cells, rows_of_cells;     // [cells] <- rows, and the transpose
  CsrPointers common, rows_of_common;   // [slates] <- rows, and the transpose
  CsrPointers scores, configs_of_cell;  // [configurations] <- cells, and the transpose
  CsrPointers configs_of_slate;         // [slates] <- configurations
  const std::int32_t* slate = nullptr;  // [configurations]
  const double* nodes = nullptr;        // [configurations] number of nodes of each
};

// Intermediate values between the two steps of the readout, [cells, width] and [slates, width].
struct ReadoutParts {
  Planes<double> cells, common;
};

// In the functions on readouts x and d_x are [rows, width] of T, float or double; y and
// d_y are [configurations, width]; everything except T is double. launch_aggregate computes the
// sums over rows.

// y[k] = the sum of k's cells and of the common rows of its slate; with `mean` divided by its
// nodes.
void launch_read_out(const ReadoutPointers& readout, Columns columns, const ReadoutParts& sums,
                     bool mean, Planes<double> y, CUstream_st* stream);
// d_parts from d_y: the transposed operation.
void launch_spread_scores(const ReadoutPointers& readout, Columns columns, Planes<const double> d_y,
                          bool mean, const ReadoutParts& d_parts, CUstream_st* stream);
// d_x[row] = the sum of weight * d_parts over the row's cells and slates.
template <typename T>
void launch_spread_parts(const ReadoutPointers& readout, Columns columns,
                         const ReadoutParts& d_parts, Planes<T> d_x, CUstream_st* stream);

// best[i] = the largest row of cell or slate i of `matrix`, minus infinity if it has none, NaN if
// one is NaN; ties[i] = number of nodes that reach it.
template <typename T>
void launch_pool_max(const CsrPointers& matrix, Columns columns, Planes<const T> x,
                     Planes<double> best, Planes<double> ties, Planes<double> parts,
                     CUstream_st* stream);
// y[k] = the largest of k's cells and its slate's common rows.
void launch_read_out_max(const ReadoutPointers& readout, Columns columns, const ReadoutParts& best,
                         Planes<double> y, CUstream_st* stream);
// part[k] = d_y[k] / the ties of all that reach y[k], 0 if nothing does. [configurations, width]
void launch_max_parts(const ReadoutPointers& readout, Columns columns, const ReadoutParts& best,
                      const ReadoutParts& ties, Planes<const double> y, Planes<const double> d_y,
                      Planes<double> part, CUstream_st* stream);
// share[i] = the sum of the parts of the configurations of cell or slate i whose y equals best[i].
// `configs` is configs_of_cell or configs_of_slate.
void launch_max_parts_of(const CsrPointers& configs, Columns columns, Planes<const double> best,
                         Planes<const double> y, Planes<const double> part, Planes<double> share,
                         CUstream_st* stream);
// d_x[row] = the sum of weight * share over the cells and slates whose best equals the row.
template <typename T>
void launch_spread_shares(const ReadoutPointers& readout, Columns columns, Planes<const T> x,
                          const ReadoutParts& best, const ReadoutParts& share, Planes<T> d_x,
                          CUstream_st* stream);

}  // namespace tpudist
