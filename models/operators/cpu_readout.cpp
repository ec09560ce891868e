#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "models/kernels/cpu_blocks.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

// Rows of doubles, `width` long.
struct Table {
  Table(std::int64_t rows, std::int64_t width, double value = 0)
      : width(width), values(static_cast<std::size_t>(rows * width), value) {}
  double* row(std::int64_t i) { return values.data() + i * width; }
  const double* row(std::int64_t i) const { return values.data() + i * width; }
  std::int64_t width;
  std::vector<double> values;
};

template <typename Body>
void for_entries(const Csr& matrix, std::int64_t row, Body&& body) {
  for (std::int64_t e = matrix.begin[row]; e < matrix.begin[row + 1]; ++e)
    body(matrix.source[e], static_cast<double>(matrix.weight_of(e)));
}

template <typename From>
void add_scaled(const From* x, double scale, std::int64_t width, double* y) {
  for (std::int64_t c = 0; c < width; ++c) y[c] += scale * x[c];
}

// y[i] = the sum of weight * x[source] over row i of the matrix, as tasks of the pool.
template <typename From>
Table multiply(const Csr& matrix, const From* x, std::int64_t width, ThreadPool& pool) {
  Table y(matrix.rows(), width);
  pool.parallel_for(matrix.rows(), [&](std::int64_t i) {
    for_entries(matrix, i, [&](std::int64_t source, double weight) {
      add_scaled(x + source * width, weight, width, y.row(i));
    });
  });
  return y;
}

template <typename T>
void sum_rows(const Readout& readout, const T* x, bool mean, std::int64_t width, double* y,
              ThreadPool& pool) {
  const Table cells = multiply(readout.cells.forward, x, width, pool),
              common = multiply(readout.common.forward, x, width, pool);
  const std::vector<double> nodes = mean ? node_counts(readout) : std::vector<double>();
  for (std::size_t k = 0; k < readout.slate_of_config.size(); ++k) {
    double* const out = y + static_cast<std::int64_t>(k) * width;
    std::copy_n(common.row(readout.slate_of_config[k]), width, out);
    for_entries(readout.scores.forward, static_cast<std::int64_t>(k),
                [&](std::int64_t cell, double) { add_scaled(cells.row(cell), 1, width, out); });
    for (std::int64_t c = 0; mean && c < width; ++c) out[c] /= nodes[k];
  }
}

// d x[row] = the sum of the gradients that its cells and slates pass to it.
template <typename T>
void spread(const Readout& readout, const Table& cell, const Table& slate, T* d_x,
            ThreadPool& pool) {
  const std::int64_t width = cell.width;
  for_row_blocks(
      pool, readout.cells.transposed.rows(), [&](std::int64_t first, std::int64_t count) {
        std::vector<double> sum(width);
        for (std::int64_t row = first; row < first + count; ++row) {
          std::ranges::fill(sum, 0.0);
          for_entries(readout.cells.transposed, row, [&](std::int64_t c, double weight) {
            add_scaled(cell.row(c), weight, width, sum.data());
          });
          for_entries(readout.common.transposed, row, [&](std::int64_t s, double weight) {
            add_scaled(slate.row(s), weight, width, sum.data());
          });
          for (std::int64_t c = 0; c < width; ++c) d_x[row * width + c] = static_cast<T>(sum[c]);
        }
      });
}

template <typename T>
void spread_sum(const Readout& readout, const double* d_y, bool mean, std::int64_t width, T* d_x,
                ThreadPool& pool) {
  std::vector<double> scaled(d_y, d_y + readout.slate_of_config.size() * width);
  const std::vector<double> nodes = mean ? node_counts(readout) : std::vector<double>();
  for (std::size_t i = 0; mean && i < scaled.size(); ++i)
    scaled[i] /= nodes[i / static_cast<std::size_t>(width)];
  const Table cell = multiply(readout.scores.transposed, scaled.data(), width, pool);
  Table slate(readout.common.forward.rows(), width);
  for (std::size_t k = 0; k < readout.slate_of_config.size(); ++k) {
    add_scaled(scaled.data() + k * width, 1, width, slate.row(readout.slate_of_config[k]));
  }
  spread(readout, cell, slate, d_x, pool);
}

// Raises `best` to `value`. Once `best` is NaN, it stays NaN.
void raise(double value, double& best) {
  if (value > best || std::isnan(value)) best = value;
}

// The largest row of each cell or slate, channel by channel.
template <typename T>
Table largest(const Csr& matrix, const T* x, std::int64_t width, ThreadPool& pool) {
  Table best(matrix.rows(), width, -std::numeric_limits<double>::infinity());
  pool.parallel_for(matrix.rows(), [&](std::int64_t i) {
    for_entries(matrix, i, [&](std::int64_t source, double) {
      for (std::int64_t c = 0; c < width; ++c) {
        const double value = x[source * width + c];
        raise(value, best.row(i)[c]);
      }
    });
  });
  return best;
}

template <typename T>
void max_rows(const Readout& readout, const T* x, std::int64_t width, double* y, ThreadPool& pool) {
  const Table cells = largest(readout.cells.forward, x, width, pool),
              common = largest(readout.common.forward, x, width, pool);
  for (std::size_t k = 0; k < readout.slate_of_config.size(); ++k) {
    double* const out = y + static_cast<std::int64_t>(k) * width;
    std::copy_n(common.row(readout.slate_of_config[k]), width, out);
    for_entries(readout.scores.forward, static_cast<std::int64_t>(k),
                [&](std::int64_t cell, double) {
                  for (std::int64_t c = 0; c < width; ++c) raise(cells.row(cell)[c], out[c]);
                });
  }
}

// How many nodes of each cell or slate reach a value: [rows of the matrix, width].
template <typename T>
Table count_ties(const Csr& matrix, const T* x, const Table& best, ThreadPool& pool) {
  Table ties(matrix.rows(), best.width);
  pool.parallel_for(matrix.rows(), [&](std::int64_t i) {
    for_entries(matrix, i, [&](std::int64_t source, double weight) {
      for (std::int64_t c = 0; c < best.width; ++c)
        ties.row(i)[c] += x[source * best.width + c] == best.row(i)[c] ? weight : 0;
    });
  });
  return ties;
}

// Each configuration passes its gradient to the cells and common rows that reach its maximum,
// divided by the number of nodes that do. Rows of a cell that do not reach the cell's own maximum
// get nothing.
template <typename T>
void spread_max(const Readout& readout, const T* x, const double* y, const double* d_y,
                std::int64_t width, T* d_x, ThreadPool& pool) {
  const Table best_cell = largest(readout.cells.forward, x, width, pool),
              best_common = largest(readout.common.forward, x, width, pool);
  const Table cell_ties = count_ties(readout.cells.forward, x, best_cell, pool),
              common_ties = count_ties(readout.common.forward, x, best_common, pool);
  Table cell(best_cell.values.size() / width, width),
      slate(best_common.values.size() / width, width);
  std::vector<double> ties(width);
  for (std::size_t k = 0; k < readout.slate_of_config.size(); ++k) {
    const double* const top = y + static_cast<std::int64_t>(k) * width;
    const std::int32_t s = readout.slate_of_config[k];
    const auto each_part = [&](auto&& body) {
      body(best_common.row(s), common_ties.row(s), slate.row(s));
      for_entries(
          readout.scores.forward, static_cast<std::int64_t>(k),
          [&](std::int64_t i, double) { body(best_cell.row(i), cell_ties.row(i), cell.row(i)); });
    };
    std::ranges::fill(ties, 0.0);
    each_part([&](const double* best, const double* own, double*) {
      for (std::int64_t c = 0; c < width; ++c) ties[c] += best[c] == top[c] ? own[c] : 0;
    });
    each_part([&](const double* best, const double*, double* share) {
      for (std::int64_t c = 0; c < width; ++c) {
        if (best[c] == top[c] && ties[c] > 0)
          share[c] += d_y[static_cast<std::int64_t>(k) * width + c] / ties[c];
      }
    });
  }
  for_row_blocks(
      pool, readout.cells.transposed.rows(), [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t row = first; row < first + count; ++row) {
          T* const out = d_x + row * width;
          const T* const own = x + row * width;
          std::fill_n(out, width, T{0});
          const auto add = [&](const double* best, const double* share, double weight) {
            for (std::int64_t c = 0; c < width; ++c)
              out[c] += own[c] == best[c] ? static_cast<T>(weight * share[c]) : T{0};
          };
          for_entries(readout.cells.transposed, row, [&](std::int64_t i, double weight) {
            add(best_cell.row(i), cell.row(i), weight);
          });
          for_entries(readout.common.transposed, row, [&](std::int64_t i, double weight) {
            add(best_common.row(i), slate.row(i), weight);
          });
        }
      });
}

}  // namespace

namespace {

// value(row) is the value of one row.
template <typename Value>
std::vector<double> sums_of(const Readout& readout, const Value& value) {
  const auto total = [&](const Csr& matrix, std::int64_t row) {
    double sum = 0;
    for_entries(matrix, row,
                [&](std::int64_t source, double weight) { sum += weight * value(source); });
    return sum;
  };
  std::vector<double> sums;
  for (std::size_t k = 0; k < readout.slate_of_config.size(); ++k) {
    sums.push_back(total(readout.common.forward, readout.slate_of_config[k]));
    for_entries(
        readout.scores.forward, static_cast<std::int64_t>(k),
        [&](std::int64_t cell, double) { sums.back() += total(readout.cells.forward, cell); });
  }
  return sums;
}

}  // namespace

std::vector<double> config_sums(const Readout& readout, const std::vector<double>& values) {
  return sums_of(readout, [&](std::int64_t row) { return values[static_cast<std::size_t>(row)]; });
}

std::vector<double> node_counts(const Readout& readout) {
  std::vector<double> counts = sums_of(readout, [](std::int64_t) { return 1.0; });
  for (std::size_t k = 0; k < counts.size() && !readout.left_out.empty(); ++k)
    counts[k] += readout.left_out[readout.slate_of_config[k]];
  return counts;
}

at::Tensor CpuBackend::pool(const Readout& readout, const at::Tensor& x,
                            Aggregation aggregation) const {
  const auto configs = static_cast<std::int64_t>(readout.slate_of_config.size());
  const std::int64_t width = x.size(2);
  at::Tensor y = make_rows(x.size(0), configs, width, at::kDouble);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool_rows", [&] {
    for (std::int64_t m = 0; m < x.size(0); ++m) {
      const scalar_t* const in = plane<scalar_t>(x, m);
      double* const out = mutable_plane<double>(y, m);
      if (aggregation == Aggregation::max) {
        max_rows(readout, in, width, out, pool_);
      } else {
        sum_rows(readout, in, aggregation == Aggregation::mean, width, out, pool_);
      }
    }
  });
  return y;
}

at::Tensor CpuBackend::pool_gradient(const Readout& readout, const at::Tensor& x,
                                     const at::Tensor& y, const at::Tensor& d_y,
                                     Aggregation aggregation) const {
  at::Tensor d_x = rows_like(x);
  const std::int64_t width = x.size(2);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool_rows", [&] {
    for (std::int64_t m = 0; m < x.size(0); ++m) {
      const double* const d_out = plane<double>(d_y, m);
      scalar_t* const d_in = mutable_plane<scalar_t>(d_x, m);
      if (aggregation == Aggregation::max) {
        spread_max(readout, plane<scalar_t>(x, m), plane<double>(y, m), d_out, width, d_in, pool_);
      } else {
        spread_sum(readout, d_out, aggregation == Aggregation::mean, width, d_in, pool_);
      }
    }
  });
  return d_x;
}

}  // namespace tpudist
