#pragma once

#include <cstdint>
#include <type_traits>

#include "core/philox.hpp"

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

// One matrix for each member of a call: that of member m begins m * distance numbers behind `data`.
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

// What is kept between the two launches: `parts` [2 * chunks of the matrix, width] for each member,
// written and read by the call alone. Not used where no row is long.

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

// The second half, by the transposed matrix: y[i] = sum of weight * share[source] over those
// entries of row i for which x[i] equals best[source]. y and x are [transposed.rows, width].
template <typename T>
void launch_max_gradient(const CsrPointers& transposed, Columns columns, Planes<const T> x,
                         Planes<const T> best, Planes<const T> share, Planes<T> y, Planes<T> parts,
                         CUstream_st* stream);

}  // namespace tpudist
