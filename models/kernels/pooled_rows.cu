#include "models/kernels/pooled_rows.hpp"

#include <cmath>

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

using cuda_rows::for_entries;

// Each functor below computes one number of a row, a configuration, a cell or a slate.
struct ReadOut {
  ReadoutPointers readout;
  std::int64_t width;
  ReadoutParts sums;
  bool mean;
  double* y;

  template <int N>
  __device__ void run(std::int64_t config, std::int64_t column) const {
    double sum = sums.common[readout.slate[config] * width + column];
    for_entries(readout.scores, config, [&](float, std::int64_t cell) {
      sum += __ldg(sums.cells + cell * width + column);
    });
    y[config * width + column] = mean ? sum / readout.nodes[config] : sum;
  }
};

// The sum of the gradients of all configurations of a cell, or of a slate.
struct SpreadScores {
  CsrPointers configs;
  std::int64_t width;
  const double *d_y, *nodes;  // nodes: null without a mean
  double* d_part;

  template <int N>
  __device__ void run(std::int64_t part, std::int64_t column) const {
    double sum = 0;
    for_entries(configs, part, [&](float, std::int64_t config) {
      const double own = __ldg(d_y + config * width + column);
      sum += nodes ? own / __ldg(nodes + config) : own;
    });
    d_part[part * width + column] = sum;
  }
};

template <typename T>
struct SpreadParts {
  ReadoutPointers readout;
  std::int64_t width;
  ReadoutParts d_parts;
  T* d_x;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    double sum = 0;
    const auto add = [&](const CsrPointers& matrix, const double* parts) {
      for_entries(matrix, row, [&](float weight, std::int64_t part) {
        sum += static_cast<double>(weight) * __ldg(parts + part * width + column);
      });
    };
    add(readout.rows_of_cells, d_parts.cells);
    add(readout.rows_of_common, d_parts.common);
    d_x[row * width + column] = static_cast<T>(sum);
  }
};

__device__ void raise(double value, double& best) {
  if (value > best || isnan(value)) best = value;
}

template <typename T>
struct PoolMax {
  CsrPointers matrix;
  std::int64_t width;
  const T* x;
  double *best, *ties;

  template <int N>
  __device__ void run(std::int64_t part, std::int64_t column) const {
    double most = -INFINITY, reached = 0;
    for_entries(matrix, part, [&](float, std::int64_t row) {
      raise(static_cast<double>(__ldg(x + row * width + column)), most);
    });
    for_entries(matrix, part, [&](float weight, std::int64_t row) {
      if (static_cast<double>(__ldg(x + row * width + column)) == most) reached += weight;
    });
    best[part * width + column] = most;
    ties[part * width + column] = reached;
  }
};

struct ReadOutMax {
  ReadoutPointers readout;
  std::int64_t width;
  ReadoutParts best;
  double* y;

  template <int N>
  __device__ void run(std::int64_t config, std::int64_t column) const {
    double most = best.common[readout.slate[config] * width + column];
    for_entries(readout.scores, config, [&](float, std::int64_t cell) {
      raise(__ldg(best.cells + cell * width + column), most);
    });
    y[config * width + column] = most;
  }
};

struct MaxParts {
  ReadoutPointers readout;
  std::int64_t width;
  ReadoutParts best, ties;
  const double *y, *d_y;
  double* part;

  template <int N>
  __device__ void run(std::int64_t config, std::int64_t column) const {
    const std::int64_t at = config * width + column, slate = readout.slate[config] * width + column;
    const double top = y[at];
    double reached = best.common[slate] == top ? ties.common[slate] : 0;
    for_entries(readout.scores, config, [&](float, std::int64_t cell) {
      if (__ldg(best.cells + cell * width + column) == top)
        reached += __ldg(ties.cells + cell * width + column);
    });
    part[at] = reached > 0 ? d_y[at] / reached : 0;
  }
};

struct MaxPartsOf {
  CsrPointers configs;
  std::int64_t width;
  const double *best, *y, *part;
  double* share;

  template <int N>
  __device__ void run(std::int64_t own, std::int64_t column) const {
    const double most = best[own * width + column];
    double sum = 0;
    for_entries(configs, own, [&](float, std::int64_t config) {
      const std::int64_t at = config * width + column;
      if (__ldg(y + at) == most) sum += __ldg(part + at);
    });
    share[own * width + column] = sum;
  }
};

template <typename T>
struct SpreadShares {
  ReadoutPointers readout;
  std::int64_t width;
  const T* x;
  ReadoutParts best, share;
  T* d_x;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const double own = x[row * width + column];
    T sum = 0;
    const auto add = [&](const CsrPointers& matrix, const double* most, const double* shares) {
      for_entries(matrix, row, [&](float weight, std::int64_t part) {
        const std::int64_t at = part * width + column;
        if (__ldg(most + at) == own)
          sum += static_cast<T>(static_cast<double>(weight) * __ldg(shares + at));
      });
    };
    add(readout.rows_of_cells, best.cells, share.cells);
    add(readout.rows_of_common, best.common, share.common);
    d_x[row * width + column] = sum;
  }
};

std::int64_t rows_of(const ReadoutPointers& readout) {
  return readout.rows_of_cells.rows;
}

}  // namespace

void launch_read_out(const ReadoutPointers& readout, std::int64_t width, const ReadoutParts& sums,
                     bool mean, double* y, CUstream_st* stream) {
  cuda_rows::launch<1>(readout.scores.rows, width, ReadOut{readout, width, sums, mean, y}, stream);
}

void launch_spread_scores(const ReadoutPointers& readout, std::int64_t width, const double* d_y,
                          bool mean, const ReadoutParts& d_parts, CUstream_st* stream) {
  const double* const nodes = mean ? readout.nodes : nullptr;
  const auto spread = [&](const CsrPointers& configs, double* to) {
    cuda_rows::launch<1>(configs.rows, width, SpreadScores{configs, width, d_y, nodes, to}, stream);
  };
  spread(readout.configs_of_cell, d_parts.cells);
  spread(readout.configs_of_slate, d_parts.common);
}

template <typename T>
void launch_spread_parts(const ReadoutPointers& readout, std::int64_t width,
                         const ReadoutParts& d_parts, T* d_x, CUstream_st* stream) {
  cuda_rows::launch<1>(rows_of(readout), width, SpreadParts<T>{readout, width, d_parts, d_x},
                       stream);
}

template <typename T>
void launch_pool_max(const CsrPointers& matrix, std::int64_t width, const T* x, double* best,
                     double* ties, CUstream_st* stream) {
  cuda_rows::launch<1>(matrix.rows, width, PoolMax<T>{matrix, width, x, best, ties}, stream);
}

void launch_read_out_max(const ReadoutPointers& readout, std::int64_t width,
                         const ReadoutParts& best, double* y, CUstream_st* stream) {
  cuda_rows::launch<1>(readout.scores.rows, width, ReadOutMax{readout, width, best, y}, stream);
}

void launch_max_parts(const ReadoutPointers& readout, std::int64_t width, const ReadoutParts& best,
                      const ReadoutParts& ties, const double* y, const double* d_y, double* part,
                      CUstream_st* stream) {
  cuda_rows::launch<1>(readout.scores.rows, width,
                       MaxParts{readout, width, best, ties, y, d_y, part}, stream);
}

void launch_max_parts_of(const CsrPointers& configs, std::int64_t width, const double* best,
                         const double* y, const double* part, double* share, CUstream_st* stream) {
  cuda_rows::launch<1>(configs.rows, width, MaxPartsOf{configs, width, best, y, part, share},
                       stream);
}

template <typename T>
void launch_spread_shares(const ReadoutPointers& readout, std::int64_t width, const T* x,
                          const ReadoutParts& best, const ReadoutParts& share, T* d_x,
                          CUstream_st* stream) {
  cuda_rows::launch<1>(rows_of(readout), width,
                       SpreadShares<T>{readout, width, x, best, share, d_x}, stream);
}

#define TPUDIST_FOR(T)                                                                             \
  template void launch_spread_parts(const ReadoutPointers&, std::int64_t, const ReadoutParts&, T*, \
                                    CUstream_st*);                                                 \
  template void launch_pool_max(const CsrPointers&, std::int64_t, const T*, double*, double*,      \
                                CUstream_st*);                                                     \
  template void launch_spread_shares(const ReadoutPointers&, std::int64_t, const T*,               \
                                     const ReadoutParts&, const ReadoutParts&, T*, CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
