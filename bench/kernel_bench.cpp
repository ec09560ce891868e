// The kernels of the CPU executor beside what the machine can do: row kernels in GB/s (bytes read
// and written) against copying the same number of bytes, products in GFLOP/s against the best of a
// 512 x 512 x 512 product, all measured in the same run, on one thread and on all.
//
//   kernel_bench [THREADS]

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "core/aligned.hpp"
#include "core/random.hpp"
#include "core/thread_pool.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/row_kernels.hpp"
#include "models/plans/csr.hpp"
#include "tests/models/plans/make_csr.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kBlock = 256;  // rows of a task, as in the executor

// The best of several runs, in seconds.
double best_seconds(const std::function<void()>& run) {
  double best = 1e30;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(600);
  run();
  do {
    const Clock::time_point start = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  } while (Clock::now() < end);
  return best;
}

// `task` for each block of rows, on all threads of the pool.
double block_seconds(ThreadPool& pool, std::int64_t rows,
                     const std::function<void(std::int64_t first, std::int64_t count)>& task) {
  const std::int64_t blocks = (rows + kBlock - 1) / kBlock;
  return best_seconds([&] {
    pool.parallel_for(blocks, [&](std::int64_t block) {
      const std::int64_t first = block * kBlock;
      task(first, std::min(kBlock, rows - first));
    });
  });
}

// GB/s (read and written) of copying a matrix.
double copy_rate(ThreadPool& pool, std::int64_t rows, std::int64_t width) {
  AlignedFloats from(rows * width, 1.0f), to(rows * width, 0.0f);
  const double seconds = block_seconds(pool, rows, [&](std::int64_t first, std::int64_t count) {
    std::memcpy(to.data() + first * width, from.data() + first * width,
                count * width * sizeof(float));
  });
  return 2e-9 * static_cast<double>(rows * width * sizeof(float)) / seconds;
}

// About as many neighbours as in the graphs: one to three, near the row and seldom far away.
Csr random_csr(std::int64_t rows, CounterRng& rng) {
  std::vector<test::CsrEntry> entries;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint64_t neighbours = 1 + (rng.below(3) == 0) + (rng.below(6) == 0);
    for (std::uint64_t e = 0; e < neighbours; ++e) {
      const std::int64_t near = std::min<std::int64_t>(rows - 1, row + rng.below(64));
      const auto source = static_cast<std::int32_t>(
          rng.below(16) ? near : static_cast<std::int64_t>(rng.below(rows)));
      entries.push_back({static_cast<std::int32_t>(row), source, 0.5f});
    }
  }
  return test::make_csr(rows, entries);
}

void row_kernels(ThreadPool& pool, std::int64_t rows, std::int64_t width) {
  CounterRng rng(1);
  const Csr csr = random_csr(rows, rng);
  AlignedFloats x(rows * width, 1.0f), y(rows * width), z(rows * width, 0.5f), bias(width, 0.1f);
  const double copy = copy_rate(pool, rows, width);
  const auto report = [&](const char* name, double floats, double seconds) {
    const double rate = 1e-9 * floats * sizeof(float) / seconds;
    std::printf("| %s | %lld x %lld | %.1f | %.1f | %.2f |\n", name, static_cast<long long>(rows),
                static_cast<long long>(width), rate, copy, rate / copy);
  };
  const auto row = [&](AlignedFloats& matrix, std::int64_t i) {
    return Rows{matrix.data() + i * width, width};
  };
  report("sum over neighbours", static_cast<double>((csr.entries() + rows) * width),
         block_seconds(pool, rows, [&](std::int64_t first, std::int64_t count) {
           spmm_rows(csr, first, count, row(x, 0), width, row(y, first));
         }));
  report("sum over neighbours, added and masked",
         static_cast<double>((csr.entries() + 3 * rows) * width),
         block_seconds(pool, rows, [&](std::int64_t first, std::int64_t count) {
           spmm_rows(csr, first, count, row(x, 0), width, row(y, first),
                     {.base = row(y, first), .mask = row(z, first)});
         }));
  const auto entries = static_cast<double>(csr.entries() * width),
             floats = static_cast<double>(rows * width);
  report("max over neighbours", entries + floats,
         block_seconds(pool, rows, [&](std::int64_t first, std::int64_t count) {
           spmm_max_rows(csr, first, count, row(x, 0), width, row(y, first));
         }));
  // Divided again and again, so that the gradient is kept out of the denormal numbers.
  std::fill(y.begin(), y.end(), 1.0f);
  AlignedFloats gradient(rows * width);
  report("its gradient shared by equal ones", entries + 3 * floats,
         block_seconds(pool, rows, [&](std::int64_t first, std::int64_t count) {
           std::fill_n(row(gradient, first).data, count * width, 1.0f);
           spmm_max_shares(csr, first, count, row(x, 0), row(y, first), width,
                           row(gradient, first));
         }));
  const Csr transposed = transpose(csr, rows);
  report("and gathered, added and masked", 2 * entries + 4 * floats,
         block_seconds(pool, rows, [&](std::int64_t first, std::int64_t count) {
           spmm_max_backward_rows(transposed, first, count, row(x, first), row(y, 0),
                                  row(gradient, 0), width, row(z, first),
                                  {.base = row(z, first), .mask = row(x, first)});
         }));
  std::fill(z.begin(), z.end(), 0.5f);
  std::vector<std::int32_t> self(rows), neighbourhood(rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    self[i] = static_cast<std::int32_t>(i * 3 / 4);
    neighbourhood[i] = static_cast<std::int32_t>(i * 5 / 8);
  }
  report("self + neighbourhood + bias, ReLU", 3.0 * static_cast<double>(rows * width),
         block_seconds(pool, rows, [&](std::int64_t first, std::int64_t count) {
           const std::int32_t* const neighbourhoods[] = {neighbourhood.data() + first};
           const ConstRows of_neighbourhood[] = {row(z, 0)};
           combine_rows(
               {self.data() + first, row(x, 0), {}, bias.data(), neighbourhoods, of_neighbourhood},
               count, width, true, row(y, first));
         }));
}

using Gemm = void (*)(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                      float beta, float* c, std::int64_t c_stride);

// The same product by the BLAS of LibTorch; beta is 0.
void product_of_libtorch(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                         float, float* c, std::int64_t c_stride) {
  const auto view = [](const float* data, std::int64_t rows, std::int64_t columns,
                       std::int64_t stride) {
    return at::from_blob(const_cast<float*>(data), {rows, columns}, {stride, 1}, at::kFloat);
  };
  at::Tensor out = view(c, m, n, c_stride);
  at::mm_out(out, view(a.data, m, k, a.stride), view(b.data, k, n, b.stride));
}

// GFLOP/s of x [rows, k] w [k, n] in blocks of rows.
double product_rate(ThreadPool& pool, std::int64_t rows, std::int64_t k, std::int64_t n,
                    Gemm multiply) {
  AlignedFloats x(rows * k, 0.5f), w(k * n, 0.5f), y(rows * n);
  const double seconds = block_seconds(pool, rows, [&](std::int64_t first, std::int64_t count) {
    multiply(count, n, k, {x.data() + first * k, k}, {w.data(), n}, 0, y.data() + first * n, n);
  });
  return 2e-9 * static_cast<double>(rows) * static_cast<double>(k * n) / seconds;
}

double best_product_rate(ThreadPool& pool) {
  constexpr std::int64_t kSize = 512;
  std::vector<AlignedFloats> data(pool.threads(), AlignedFloats(3 * kSize * kSize, 0.5f));
  const double seconds = best_seconds([&] {
    pool.parallel_for(pool.threads(), [&](std::int64_t i) {
      float* const a = data[i].data();
      gemm(kSize, kSize, kSize, {a, kSize}, {a + kSize * kSize, kSize}, 0, a + 2 * kSize * kSize,
           kSize);
    });
  });
  return 2e-9 * kSize * kSize * kSize * pool.threads() / seconds;
}

void measure(int threads) {
  use_one_thread_per_worker();
  ThreadPool pool(threads, use_one_thread_per_worker);
  std::printf("\n%d thread%s\n\n", threads, threads == 1 ? "" : "s");
  std::printf("| kernel | rows x width | GB/s | copy GB/s | ratio |\n|---|---|---|---|---|\n");
  for (const std::int64_t rows : {3000, 200000}) {
    for (const std::int64_t width : {64, 256}) row_kernels(pool, rows, width);
  }
  const double best = best_product_rate(pool);
  std::printf("\n| product | GFLOP/s | best GFLOP/s | ratio | LibTorch |\n|---|---|---|---|---|\n");
  for (const std::int64_t k : {32, 64, 128, 256, 512}) {
    for (const std::int64_t n : {k, 2 * k}) {
      if (n > 512) continue;
      const double rate = product_rate(pool, 4096, k, n, gemm),
                   blas = product_rate(pool, 4096, k, n, product_of_libtorch);
      std::printf("| 4096 x %lld x %lld | %.0f | %.0f | %.2f | %.0f |\n", static_cast<long long>(k),
                  static_cast<long long>(n), rate, best, rate / best, blas);
    }
  }
}

}  // namespace
}  // namespace tpudist

int main(int count, char** arguments) {
  const int threads =
      count > 1 ? std::atoi(arguments[1]) : static_cast<int>(std::thread::hardware_concurrency());
  if (threads < 1) {
    std::fprintf(stderr, "usage: kernel_bench [THREADS]\n");
    return 2;
  }
  tpudist::measure(1);
  if (threads > 1) tpudist::measure(threads);
}
