#include "models/kernels/row_launches.hpp"

#include <cmath>

#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

using cuda_rows::for_entries;
using cuda_rows::Sums;

// Each functor below computes one number of a row, a configuration, a cell or a slate.
struct ReadOut {
  ReadoutPointers readout;
  std::int64_t width;
  ReadoutParts sums;
  bool mean;
  Planes<double> y;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, sums.cells, sums.common, y);
  }
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
  const double* nodes;  // null without a mean
  Planes<const double> d_y;
  Planes<double> d_part;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, d_y, d_part); }
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
  Planes<T> d_x;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, d_parts.cells, d_parts.common, d_x);
  }
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

// The largest value so far, and how many nodes reach it.
template <typename T>
struct PoolMax {
  using Number = double;
  static constexpr int kNumbers = 2;
  std::int64_t width;
  Planes<const T> x;
  Planes<double> best, ties;

  using State = Sums<double, 2, 1>;
  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, best, ties); }
  template <int N>
  __device__ State start(std::int64_t, std::int64_t) const {
    return {{{-INFINITY}, {0}}};
  }
  __device__ void add(State& most, float weight, std::int64_t row, std::int64_t column) const {
    merge(most, {{{static_cast<double>(__ldg(x + row * width + column))}, {weight}}});
  }
  __device__ void merge(State& most, const State& part) const {
    const double value = part.of[0].at[0], reach = part.of[1].at[0];
    double& ties = most.of[1].at[0];
    if (value == most.of[0].at[0]) {
      ties += reach;
    } else if (value > most.of[0].at[0] || isnan(value)) {
      most.of[0].at[0] = value;
      ties = isnan(value) ? 0 : reach;
    }
  }
  __device__ void finish(const State& most, std::int64_t part, std::int64_t column) const {
    best[part * width + column] = most.of[0].at[0];
    ties[part * width + column] = most.of[1].at[0];
  }
};

struct ReadOutMax {
  ReadoutPointers readout;
  std::int64_t width;
  ReadoutParts best;
  Planes<double> y;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, best.cells, best.common, y);
  }
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
  Planes<const double> y, d_y;
  Planes<double> part;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, best.cells, best.common, ties.cells, ties.common, y, d_y, part);
  }
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
  Planes<const double> best, y, part;
  Planes<double> share;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, best, y, part, share); }
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
  Planes<const T> x;
  ReadoutParts best, share;
  Planes<T> d_x;

  __device__ void select(std::int64_t member) {
    cuda_rows::move_to(member, x, best.cells, best.common, share.cells, share.common, d_x);
  }
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

void launch_read_out(const ReadoutPointers& readout, Columns columns, const ReadoutParts& sums,
                     bool mean, Planes<double> y, CUstream_st* stream) {
  cuda_rows::launch<1>(readout.scores.rows, columns, ReadOut{readout, columns.width, sums, mean, y},
                       stream);
}

void launch_spread_scores(const ReadoutPointers& readout, Columns columns, Planes<const double> d_y,
                          bool mean, const ReadoutParts& d_parts, CUstream_st* stream) {
  const double* const nodes = mean ? readout.nodes : nullptr;
  const auto spread = [&](const CsrPointers& configs, Planes<double> to) {
    cuda_rows::launch<1>(configs.rows, columns,
                         SpreadScores{configs, columns.width, nodes, d_y, to}, stream);
  };
  spread(readout.configs_of_cell, d_parts.cells);
  spread(readout.configs_of_slate, d_parts.common);
}

template <typename T>
void launch_spread_parts(const ReadoutPointers& readout, Columns columns,
                         const ReadoutParts& d_parts, Planes<T> d_x, CUstream_st* stream) {
  cuda_rows::launch<1>(rows_of(readout), columns,
                       SpreadParts<T>{readout, columns.width, d_parts, d_x}, stream);
}

template <typename T>
void launch_pool_max(const CsrPointers& matrix, Columns columns, Planes<const T> x,
                     Planes<double> best, Planes<double> ties, Planes<double> parts,
                     CUstream_st* stream) {
  cuda_rows::launch_walk(matrix, columns, false, PoolMax<T>{columns.width, x, best, ties}, parts,
                         stream);
}

void launch_read_out_max(const ReadoutPointers& readout, Columns columns, const ReadoutParts& best,
                         Planes<double> y, CUstream_st* stream) {
  cuda_rows::launch<1>(readout.scores.rows, columns, ReadOutMax{readout, columns.width, best, y},
                       stream);
}

void launch_max_parts(const ReadoutPointers& readout, Columns columns, const ReadoutParts& best,
                      const ReadoutParts& ties, Planes<const double> y, Planes<const double> d_y,
                      Planes<double> part, CUstream_st* stream) {
  cuda_rows::launch<1>(readout.scores.rows, columns,
                       MaxParts{readout, columns.width, best, ties, y, d_y, part}, stream);
}

void launch_max_parts_of(const CsrPointers& configs, Columns columns, Planes<const double> best,
                         Planes<const double> y, Planes<const double> part, Planes<double> share,
                         CUstream_st* stream) {
  cuda_rows::launch<1>(configs.rows, columns,
                       MaxPartsOf{configs, columns.width, best, y, part, share}, stream);
}

template <typename T>
void launch_spread_shares(const ReadoutPointers& readout, Columns columns, Planes<const T> x,
                          const ReadoutParts& best, const ReadoutParts& share, Planes<T> d_x,
                          CUstream_st* stream) {
  cuda_rows::launch<1>(rows_of(readout), columns,
                       SpreadShares<T>{readout, columns.width, x, best, share, d_x}, stream);
}

#define TPUDIST_FOR(T)                                                                        \
  template void launch_spread_parts(const ReadoutPointers&, Columns, const ReadoutParts&,     \
                                    Planes<T>, CUstream_st*);                                 \
  template void launch_pool_max(const CsrPointers&, Columns, Planes<const T>, Planes<double>, \
                                Planes<double>, Planes<double>, CUstream_st*);                \
  template void launch_spread_shares(const ReadoutPointers&, Columns, Planes<const T>,        \
                                     const ReadoutParts&, const ReadoutParts&, Planes<T>,     \
                                     CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
