#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "models/kernels/precision.hpp"
#include "models/plans/csr.hpp"

namespace tpudist {

// Vectorised loops over a block of rows, in float32 and only in the calling thread. The rows of a
// matrix are `stride` floats apart. Each loop gives the same bits wherever its block begins. All
// loops write y and z and read x.

struct ConstRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
  const float* row(std::int64_t i) const { return data + i * stride; }
};

struct Rows {
  float* data = nullptr;
  std::int64_t stride = 0;
  float* row(std::int64_t i) const { return data + i * stride; }
  operator ConstRows() const { return {data, stride}; }
};

// A block of the product of a sparse matrix with dense rows (spmm): y[i] = base[i] + sum of weight
// * x[source] over the entries of row first + i. Terms are added in the order of the entries;
// without a base they are added to 0. Entries with a source >= `sources` are skipped. With a mask,
// y is 0 in each channel where mask[i] is not positive. With K replicas row i is replica i % K of
// the matrix's row i / K, and uses the same replica of its sources. The base may be y.
struct SpmmOptions {
  std::int64_t replicas = 1;
  std::int64_t sources = std::numeric_limits<std::int64_t>::max();
  ConstRows base = {}, mask = {};
};
void spmm_rows(const Csr& matrix, std::int64_t first, std::int64_t count, ConstRows x,
               std::int64_t width, Rows y, const SpmmOptions& options = {});

// A block of the maximum over sources: y[i][c] = the largest x[source][c] over the entries of row
// first + i; 0 without entries, NaN if a source is NaN. Replicas as above.
void spmm_max_rows(const Csr& matrix, std::int64_t first, std::int64_t count, ConstRows x,
                   std::int64_t width, Rows y, std::int64_t replicas = 1);
// The first half of the backward pass of the maximum: z, the gradient of the block's maxima y, is
// divided by the sum of the weights of the sources that equal the maximum. Where the maximum is NaN
// it becomes 0.
void spmm_max_shares(const Csr& matrix, std::int64_t first, std::int64_t count, ConstRows x,
                     ConstRows y, std::int64_t width, Rows z, std::int64_t replicas = 1);
// The second half, for a block of x (`x` begins at its first row, everything else at row 0): y[i] =
// base[i] + sum of weight * share[source] over the entries of row first + i of the transposed
// matrix for which x[i] equals the maximum best[source]. Options as for spmm_rows.
void spmm_max_backward_rows(const Csr& transposed, std::int64_t first, std::int64_t count,
                            ConstRows x, ConstRows best, ConstRows share, std::int64_t width,
                            Rows y, const SpmmOptions& options = {});

// Computes the rows after a layer of a refined plan from products that several rows share: y[i] =
// self_product[self[i]] + bias + sum over the edge sets of
// neighbour_products[set][neighbourhood[set][i]] + residual[self[i]], then the activation. Without
// a residual its data is null. `self` and `neighbourhood` begin at the block's first row.
struct CombineTerms {
  const std::int32_t* self = nullptr;
  ConstRows self_product, residual;
  const float* bias = nullptr;
  std::span<const std::int32_t* const> neighbourhood;
  std::span<const ConstRows> neighbour_products;
};
void combine_rows(const CombineTerms& terms, std::int64_t count, std::int64_t width, bool relu,
                  Rows y);

// y = x
void copy_rows(ConstRows x, std::int64_t count, std::int64_t width, Rows y);
// y = x rounded to tf32 or bf16; a NaN stays a NaN, and overflow gives infinity
void round_rows(Precision precision, ConstRows x, std::int64_t count, std::int64_t width, Rows y);
// y += x
void add_rows(ConstRows x, std::int64_t count, std::int64_t width, Rows y);
// y = act(y + bias + residual); no residual: null data.
void bias_relu_rows(Rows y, std::int64_t count, std::int64_t width, const float* bias,
                    ConstRows residual, bool relu);
// y[i] = relu(nodes[node[i]] + (state[i] < 0 ? 0 : states[state[i]]))
void join_rows(const std::int32_t* node, const std::int32_t* state, std::int64_t count,
               ConstRows nodes, ConstRows states, std::int64_t width, Rows y);
// z = x > 0 ? z : 0, the backward pass of a ReLU whose output is x
void relu_backward_rows(Rows z, std::int64_t count, std::int64_t width, ConstRows x);
// sums += x summed over the rows
void add_column_sums(ConstRows x, std::int64_t count, std::int64_t width, float* sums);
// z[i] = scale[i] * w
void outer_rows(const float* scale, std::int64_t count, std::int64_t width, const float* w, Rows z);
// sums += sum over i of scale[i] * x[i]
void add_scaled_rows(const float* scale, ConstRows x, std::int64_t count, std::int64_t width,
                     float* sums);
// y[i] = x[i] . w in double
void dot_rows(ConstRows x, std::int64_t count, std::int64_t width, const float* w, double* y);
// y = x[0] + x[1] + ... in this order, each of `length` floats; 0 without parts
void sum_parts(const float* x, std::int64_t stride, std::int64_t parts, std::int64_t length,
               float* y);

}  // namespace tpudist
