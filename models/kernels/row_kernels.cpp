#include "models/kernels/row_kernels.hpp"

#include <algorithm>
#include <bit>

#include "models/kernels/vectorised.hpp"

namespace tpudist {

TPUDIST_VECTORISED
void spmm_rows(const Csr& matrix, std::int64_t first, std::int64_t count, ConstRows x,
               std::int64_t width, Rows y, const SpmmOptions& options) {
  const std::int32_t* const begin = matrix.begin.data();
  const std::int32_t* const source = matrix.source.data();
  const float* const weight = matrix.weight.empty() ? nullptr : matrix.weight.data();
  const std::int64_t replicas = options.replicas;
  std::int64_t row = first / replicas, replica = first % replicas;
  for (std::int64_t i = 0; i < count; ++i) {
    float* const out = y.row(i);
    const float* const own = options.base.data ? options.base.row(i) : nullptr;
    std::int64_t e = begin[row];
    const std::int64_t end = begin[row + 1];
    if (e == end || source[e] >= options.sources) {
      for (std::int64_t c = 0; c < width; ++c) out[c] = own ? own[c] : 0;
    } else {
      const float* const __restrict in = x.row(source[e] * replicas + replica);
      const float w = weight ? weight[e] : 1.0f;
      ++e;
      if (own) {
#pragma GCC ivdep
        for (std::int64_t c = 0; c < width; ++c) out[c] = own[c] + w * in[c];
      } else {
#pragma GCC ivdep
        for (std::int64_t c = 0; c < width; ++c) out[c] = w * in[c];
      }
      for (; e < end && source[e] < options.sources; ++e) {
        const float* const __restrict more = x.row(source[e] * replicas + replica);
        const float v = weight ? weight[e] : 1.0f;
#pragma GCC ivdep
        for (std::int64_t c = 0; c < width; ++c) out[c] += v * more[c];
      }
    }
    if (options.mask.data) {
      const float* const __restrict positive = options.mask.row(i);
      for (std::int64_t c = 0; c < width; ++c) out[c] = positive[c] > 0 ? out[c] : 0;
    }
    if (++replica == replicas) {
      replica = 0;
      ++row;
    }
  }
}

TPUDIST_VECTORISED
void spmm_max_rows(const Csr& matrix, std::int64_t first, std::int64_t count, ConstRows x,
                   std::int64_t width, Rows y, std::int64_t replicas) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) / replicas, replica = (first + i) % replicas;
    float* const __restrict out = y.row(i);
    const std::int64_t begin = matrix.begin[row], end = matrix.begin[row + 1];
    if (begin == end) {
      std::fill_n(out, width, 0.0f);
      continue;
    }
    std::copy_n(x.row(matrix.source[begin] * replicas + replica), width, out);
    for (std::int64_t e = begin + 1; e < end; ++e) {
      const float* const __restrict in = x.row(matrix.source[e] * replicas + replica);
      // If there are NaNs, the first one stays.
      for (std::int64_t c = 0; c < width; ++c) {
        out[c] = (in[c] > out[c]) | (in[c] != in[c]) ? in[c] : out[c];
      }
    }
  }
}

TPUDIST_VECTORISED
void spmm_max_shares(const Csr& matrix, std::int64_t first, std::int64_t count, ConstRows x,
                     ConstRows y, std::int64_t width, Rows z, std::int64_t replicas) {
  constexpr std::int64_t kColumns = 256;
  float ties[kColumns];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) / replicas, replica = (first + i) % replicas;
    const std::int64_t begin = matrix.begin[row], end = matrix.begin[row + 1];
    if (end - begin == 1 && matrix.weight_of(begin) == 1) continue;  // nothing to share
    for (std::int64_t at = 0; at < width && begin < end; at += kColumns) {
      const std::int64_t n = std::min(kColumns, width - at);
      const float* const __restrict best = y.row(i) + at;
      std::fill_n(ties, n, 0.0f);
      for (std::int64_t e = begin; e < end; ++e) {
        const float* const __restrict in = x.row(matrix.source[e] * replicas + replica) + at;
        const float w = matrix.weight_of(e);
        for (std::int64_t c = 0; c < n; ++c) ties[c] += in[c] == best[c] ? w : 0.0f;
      }
      float* const __restrict out = z.row(i) + at;
      // No source equals a NaN.
      for (std::int64_t c = 0; c < n; ++c) out[c] = ties[c] > 0 ? out[c] / ties[c] : 0;
    }
  }
}

TPUDIST_VECTORISED
void spmm_max_backward_rows(const Csr& transposed, std::int64_t first, std::int64_t count,
                            ConstRows x, ConstRows best, ConstRows share, std::int64_t width,
                            Rows y, const SpmmOptions& options) {
  const std::int64_t replicas = options.replicas;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) / replicas, replica = (first + i) % replicas;
    float* const __restrict out = y.row(i);
    const float* const __restrict own = x.row(i);
    if (!options.base.data) {
      std::fill_n(out, width, 0.0f);
    } else if (options.base.row(i) != out) {
      std::copy_n(options.base.row(i), width, out);
    }
    for (std::int64_t e = transposed.begin[row];
         e < transposed.begin[row + 1] && transposed.source[e] < options.sources; ++e) {
      const std::int64_t taker = transposed.source[e] * replicas + replica;
      const float* const __restrict largest = best.row(taker);
      const float* const __restrict in = share.row(taker);
      const float w = transposed.weight_of(e);
      for (std::int64_t c = 0; c < width; ++c) out[c] += own[c] == largest[c] ? w * in[c] : 0.0f;
    }
    if (options.mask.data) {
      const float* const __restrict positive = options.mask.row(i);
      for (std::int64_t c = 0; c < width; ++c) out[c] = positive[c] > 0 ? out[c] : 0;
    }
  }
}

TPUDIST_VECTORISED
void combine_rows(const CombineTerms& terms, std::int64_t count, std::int64_t width, bool relu,
                  Rows y) {
  const std::size_t sets = terms.neighbour_products.size();
  const float* const __restrict bias = terms.bias;
  for (std::int64_t i = 0; i < count; ++i) {
    float* const __restrict out = y.row(i);
    const float* const __restrict own = terms.self_product.row(terms.self[i]);
    if (sets == 0) {
      for (std::int64_t c = 0; c < width; ++c) out[c] = own[c] + bias[c];
    } else {
      const float* const __restrict around =
          terms.neighbour_products[0].row(terms.neighbourhood[0][i]);
      for (std::int64_t c = 0; c < width; ++c) out[c] = (own[c] + bias[c]) + around[c];
    }
    for (std::size_t set = 1; set < sets; ++set) {
      const float* const __restrict around =
          terms.neighbour_products[set].row(terms.neighbourhood[set][i]);
      for (std::int64_t c = 0; c < width; ++c) out[c] += around[c];
    }
    if (terms.residual.data) {
      const float* const __restrict before = terms.residual.row(terms.self[i]);
      for (std::int64_t c = 0; c < width; ++c) out[c] += before[c];
    }
    if (!relu) continue;
    // A NaN stays a NaN.
    for (std::int64_t c = 0; c < width; ++c) out[c] = out[c] < 0 ? 0 : out[c];
  }
}

void copy_rows(ConstRows x, std::int64_t count, std::int64_t width, Rows y) {
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(x.row(i), width, y.row(i));
}

TPUDIST_VECTORISED
void round_rows(Precision precision, ConstRows x, std::int64_t count, std::int64_t width, Rows y) {
  const std::uint32_t to_even = precision == Precision::bf16;
  const int dropped = to_even ? 16 : 13;  // binary digits of the 23
  const std::uint32_t below_half = (1u << (dropped - 1)) - to_even, kept = ~0u << dropped;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const __restrict in = x.row(i);
    float* const __restrict out = y.row(i);
    for (std::int64_t c = 0; c < width; ++c) {
      const auto bits = std::bit_cast<std::uint32_t>(in[c]);
      const std::uint32_t up = bits + below_half + (bits >> dropped & to_even);
      const bool nan = (bits & 0x7fffffff) > 0x7f800000;
      out[c] = std::bit_cast<float>((nan ? bits | 0x400000 : up) & kept);
    }
  }
}

TPUDIST_VECTORISED
void add_rows(ConstRows x, std::int64_t count, std::int64_t width, Rows y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const __restrict in = x.row(i);
    float* const __restrict out = y.row(i);
    for (std::int64_t c = 0; c < width; ++c) out[c] += in[c];
  }
}

TPUDIST_VECTORISED
void bias_relu_rows(Rows y, std::int64_t count, std::int64_t width, const float* bias,
                    ConstRows residual, bool relu) {
  for (std::int64_t i = 0; i < count; ++i) {
    float* const __restrict out = y.row(i);
    const float* const __restrict b = bias;
    if (residual.data) {
      const float* const __restrict in = residual.row(i);
      for (std::int64_t c = 0; c < width; ++c) out[c] = (out[c] + b[c]) + in[c];
    } else {
      for (std::int64_t c = 0; c < width; ++c) out[c] = out[c] + b[c];
    }
    if (!relu) continue;
    // A NaN stays a NaN.
    for (std::int64_t c = 0; c < width; ++c) out[c] = out[c] < 0 ? 0 : out[c];
  }
}

TPUDIST_VECTORISED
void join_rows(const std::int32_t* node, const std::int32_t* state, std::int64_t count,
               ConstRows nodes, ConstRows states, std::int64_t width, Rows y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const __restrict a = nodes.row(node[i]);
    float* const __restrict out = y.row(i);
    if (state[i] < 0) {
      for (std::int64_t c = 0; c < width; ++c) out[c] = a[c] < 0 ? 0 : a[c];
      continue;
    }
    const float* const __restrict b = states.row(state[i]);
    for (std::int64_t c = 0; c < width; ++c) {
      const float sum = a[c] + b[c];
      out[c] = sum < 0 ? 0 : sum;
    }
  }
}

TPUDIST_VECTORISED
void relu_backward_rows(Rows z, std::int64_t count, std::int64_t width, ConstRows x) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const __restrict in = x.row(i);
    float* const __restrict out = z.row(i);
    for (std::int64_t c = 0; c < width; ++c) out[c] = in[c] > 0 ? out[c] : 0;
  }
}

TPUDIST_VECTORISED
void add_column_sums(ConstRows x, std::int64_t count, std::int64_t width, float* sums) {
  float* const __restrict out = sums;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const __restrict in = x.row(i);
    for (std::int64_t c = 0; c < width; ++c) out[c] += in[c];
  }
}

TPUDIST_VECTORISED
void outer_rows(const float* scale, std::int64_t count, std::int64_t width, const float* w,
                Rows z) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const __restrict in = w;
    float* const __restrict out = z.row(i);
    const float s = scale[i];
    for (std::int64_t c = 0; c < width; ++c) out[c] = s * in[c];
  }
}

TPUDIST_VECTORISED
void add_scaled_rows(const float* scale, ConstRows x, std::int64_t count, std::int64_t width,
                     float* sums) {
  float* const __restrict out = sums;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const __restrict in = x.row(i);
    const float s = scale[i];
    for (std::int64_t c = 0; c < width; ++c) out[c] += s * in[c];
  }
}

TPUDIST_VECTORISED
void dot_rows(ConstRows x, std::int64_t count, std::int64_t width, const float* w, double* y) {
  constexpr int kLanes = 16;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const __restrict in = x.row(i);
    double partial[kLanes] = {};
    std::int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        partial[lane] += static_cast<double>(in[c + lane]) * static_cast<double>(w[c + lane]);
      }
    }
    double sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += partial[lane];
    for (; c < width; ++c) sum += static_cast<double>(in[c]) * static_cast<double>(w[c]);
    y[i] = sum;
  }
}

TPUDIST_VECTORISED
void sum_parts(const float* x, std::int64_t stride, std::int64_t parts, std::int64_t length,
               float* y) {
  constexpr std::int64_t kPiece = 1024;  // stays in the first cache level
  for (std::int64_t at = 0; at < length; at += kPiece) {
    const std::int64_t n = std::min(kPiece, length - at);
    float* const __restrict out = y + at;
    if (parts > 0) {
      std::copy_n(x + at, n, out);
    } else {
      std::fill_n(out, n, 0.0f);
    }
    for (std::int64_t part = 1; part < parts; ++part) {
      const float* const __restrict in = x + part * stride + at;
      for (std::int64_t i = 0; i < n; ++i) out[i] += in[i];
    }
  }
}

}  // namespace tpudist
