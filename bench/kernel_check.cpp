// Every kernel of models/kernels on fixed inputs. This file makes two programs: one with the kernels
// of nvcc, and one with the same kernels compiled as C++ (tests/gpu_check). Both must print the same
// hashes of what the kernels give; where exp is in it, sums that differ by rounding.
//
//   kernel_check            prints "kernel shape hash", or "kernel shape ~sum ~sum ..."
//   kernel_check FILE       compares that with the lines of a file; exit code 1 where they differ
//   kernel_check --time     on a GPU: bandwidth of each kernel as a share of a copy's; exit code 1 where one
//                           that moves 50 MB or more has less than 15 % (an H200: 19 % and more)

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "models/kernels/flat_launches.hpp"
#include "models/kernels/row_launches.hpp"
#include "models/plans/csr.hpp"

namespace tpudist {
namespace {

#ifdef CUDART_VERSION
void check(cudaError_t code) {
  if (code != cudaSuccess) throw Error(ErrorKind::failed, cudaGetErrorString(code));
}

struct Memory {
  explicit Memory(std::size_t bytes) : bytes(bytes) {
    check(cudaMalloc(&data, bytes > 0 ? bytes : 1));
  }
  ~Memory() { cudaFree(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void write(const void* from) { check(cudaMemcpy(data, from, bytes, cudaMemcpyDefault)); }
  void read(void* to) const { check(cudaMemcpy(to, data, bytes, cudaMemcpyDefault)); }
  std::size_t bytes;
  void* data = nullptr;
};

// Of the best of several launches.
double seconds_of(const std::function<void()>& launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  float best = 1e30f;
  for (int i = 0; i < 12; ++i) {
    check(cudaEventRecord(begin));
    launch();
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end));
    if (ms < best) best = ms;
  }
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  return best * 1e-3;
}

double copy_rate() {
  const Memory from(std::size_t{1} << 29), to(from.bytes);
  const double seconds = seconds_of(
      [&] { check(cudaMemcpyAsync(to.data, from.data, from.bytes, cudaMemcpyDeviceToDevice)); });
  return 2 * static_cast<double>(from.bytes) / seconds;
}
#else
struct Memory {
  explicit Memory(std::size_t bytes)
      : bytes(bytes), data(::operator new (bytes > 0 ? bytes : 1, std::align_val_t{256})) {}
  ~Memory() { ::operator delete (data, std::align_val_t{256}); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void write(const void* from) { std::memcpy(data, from, bytes); }
  void read(void* to) const { std::memcpy(to, data, bytes); }
  std::size_t bytes;
  void* data;
};

double seconds_of(const std::function<void()>&) {
  throw Error(ErrorKind::failed, "--time needs a GPU");
}
double copy_rate() {
  return seconds_of({});
}
#endif

// An array that kernels work on.
template <typename T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : size_(values.size()), memory_(size_ * sizeof(T)) {
    if (size_ > 0) memory_.write(values.data());
  }
  explicit Array(std::int64_t size) : Array(std::vector<T>(static_cast<std::size_t>(size))) {}
  T* data() const { return static_cast<T*>(memory_.data); }
  std::size_t size() const { return size_; }
  std::vector<T> values() const {
    std::vector<T> all(size_);
    if (size_ > 0) memory_.read(all.data());
    return all;
  }

 private:
  std::size_t size_;
  Memory memory_;
};

// Integers and numbers that are the same on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::int64_t below(std::int64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>(state_ >> 33) % n;
  }
  // Between -2/3 and 2/3 with all bits of T; one in four is a small integer, so that maxima tie.
  template <typename T>
  std::vector<T> numbers(std::int64_t count) {
    std::vector<T> all(static_cast<std::size_t>(count));
    for (T& value : all) {
      const std::int64_t drawn = below(1 << 30);
      value = drawn % 4 == 0 ? static_cast<T>(drawn / 4 % 4 - 2)
                             : (static_cast<T>(drawn) / T(1 << 30) - T(0.5)) * (T(4) / T(3));
    }
    return all;
  }

 private:
  std::uint64_t state_;
};

struct Shape {
  std::int64_t rows, width, members;
  std::int64_t longest;  // entries of a few rows; all others have up to four, many none
  std::string text(const char* type) const {
    return std::to_string(rows) + "x" + std::to_string(width) + "x" + std::to_string(members) +
           (longest > 4 ? "-long-" : "-") + type;
  }
};

// What is printed or measured of each kernel.
class Report {
 public:
  explicit Report(bool times) : times_(times), copy_(times ? copy_rate() : 0) {}
  void of(std::string shape) { shape_ = std::move(shape); }

  // A launch that writes `out`, and how many bytes it reads and writes at least.
  template <typename T>
  void exact(const std::string& kernel, const Array<T>& out, double bytes,
             const std::function<void()>& launch) {
    if (!run(kernel, bytes, launch)) return;
    Hasher hasher;
    hasher.update(std::span<const T>(out.values()));
    add(kernel, to_hex(hasher.digest()));
  }
  // The same for a kernel with exp in it.
  template <typename T>
  void near(const std::string& kernel, const Array<T>& out, double bytes,
            const std::function<void()>& launch) {
    if (!run(kernel, bytes, launch)) return;
    double sums[4] = {};
    const std::vector<T> values = out.values();
    for (std::size_t i = 0; i < values.size(); ++i) sums[i % 4] += std::abs(double{values[i]});
    std::string text;
    for (const double sum : sums) {
      char number[32];
      std::snprintf(number, sizeof number, "%s~%.9e", text.empty() ? "" : " ", sum);
      text += number;
    }
    add(kernel, text);
  }

  bool times() const { return times_; }
  const std::map<std::string, std::string>& lines() const { return lines_; }
  // Kernels that are slower than any was on an H200, so that something is wrong.
  int slow() const { return slow_; }

 private:
  bool run(const std::string& kernel, double bytes, const std::function<void()>& launch) {
    launch();
    if (!times_) return true;
    const double rate = bytes / seconds_of(launch);
    if (bytes >= 50e6 && rate < 0.15 * copy_) ++slow_;
    std::printf("%-24s %-24s %8.0f GB/s %5.0f %% of a copy\n", kernel.c_str(), shape_.c_str(),
                rate * 1e-9, 100 * rate / copy_);
    return false;
  }
  void add(const std::string& kernel, const std::string& result) {
    lines_[kernel + " " + shape_] = result;
  }

  const bool times_;
  const double copy_;  // bytes a second
  int slow_ = 0;
  std::string shape_;
  std::map<std::string, std::string> lines_;
};

struct Matrix {
  explicit Matrix(Csr csr)
      : host(std::move(csr)),
        split(split_long_rows(host, 128)),
        begin(host.begin),
        source(host.source),
        weight(host.weight),
        chunk_begin(split.chunk_begin),
        chunk_row(split.chunk_row),
        row(split.row),
        row_begin(split.begin) {}
  CsrPointers pointers() const {
    return {begin.data(),
            source.data(),
            host.weight.empty() ? nullptr : weight.data(),
            host.rows(),
            {split.length, chunk_begin.data(), chunk_row.data(), row.data(), row_begin.data(),
             static_cast<std::int64_t>(split.chunk_row.size()),
             static_cast<std::int64_t>(split.row.size())}};
  }
  std::int64_t parts() const { return 2 * static_cast<std::int64_t>(split.chunk_row.size()); }
  const Csr host;
  const LongRows split;
  Array<std::int32_t> begin, source;
  Array<float> weight;
  Array<std::int64_t> chunk_begin;
  Array<std::int32_t> chunk_row, row;
  Array<std::int64_t> row_begin;
};

// With `full` every row has an entry.
Csr draw_csr(std::int64_t rows, std::int64_t sources, std::int64_t longest, bool full, Draw& draw) {
  Csr csr;
  csr.begin.push_back(0);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t entries = full ? 1 + draw.below(4) : draw.below(5);
    if (longest > 4 && row % (rows / 3 + 1) == 1) entries = longest;
    std::int64_t source = draw.below(sources);
    for (std::int64_t e = 0; e < entries; ++e, source = (source + 1 + draw.below(7)) % sources) {
      csr.source.push_back(static_cast<std::int32_t>(source));
      csr.weight.push_back(0.7f * static_cast<float>(1 + draw.below(3)));
    }
    csr.begin.push_back(to_index32(csr.entries()));
  }
  return csr;
}

template <typename T>
constexpr double kSize = sizeof(T);

// Matrices, planes and sizes of one shape.
template <typename T>
struct Case {
  Case(const Shape& shape, Report& report)
      : shape(shape),
        report(report),
        draw(static_cast<std::uint64_t>(shape.rows + 7 * shape.width + shape.members)),
        columns(shape.width, shape.members) {
    report.of(shape.text(sizeof(T) == 4 ? "float" : "double"));
  }
  template <typename U>
  Planes<U> planes(const Array<U>& array) const {
    return {array.data(), static_cast<std::int64_t>(array.size()) / shape.members};
  }
  template <typename U>
  Array<U> plane(std::int64_t rows) const {
    return Array<U>(rows * shape.width * shape.members);
  }
  Array<T> drawn(std::int64_t rows) {
    return Array<T>(draw.numbers<T>(rows * shape.width * shape.members));
  }
  // Bytes of so many rows of all members.
  template <typename U = T>
  double bytes(std::int64_t rows) const {
    return kSize<U> * static_cast<double>(rows * shape.width * shape.members);
  }

  void sums_and_maxima() {
    const std::int64_t rows = shape.rows;
    const Matrix matrix(draw_csr(rows, rows, shape.longest, false, draw));
    const Matrix transposed(transpose(matrix.host, rows));
    std::vector<float> totals;
    for (std::int64_t row = 0; row < rows; ++row) {
      float total = 0;
      for (auto e = matrix.host.begin[row]; e < matrix.host.begin[row + 1]; ++e)
        total += matrix.host.weight[e];
      totals.push_back(total > 0 ? total : 1);
    }
    const Array<float> total(totals);
    const Array<T> x = drawn(rows), gradient = drawn(rows), y = plane<T>(rows),
                   best = plane<T>(rows), share = plane<T>(rows);
    const Array<T> parts = plane<T>(std::max(matrix.parts(), transposed.parts()));
    const std::int64_t entries = matrix.host.entries();
    const double once = bytes(entries + rows);
    report.exact("aggregate", y, once, [&] {
      launch_aggregate(matrix.pointers(), columns, planes(x), planes(y), planes(parts), nullptr);
    });
    if constexpr (sizeof(T) == 4) {
      const Array<double> wide = plane<double>(rows), wide_parts = plane<double>(matrix.parts());
      report.exact("aggregate-to-double", wide, bytes(entries) + bytes<double>(rows), [&] {
        launch_aggregate(matrix.pointers(), columns, planes(x), planes(wide), planes(wide_parts),
                         nullptr);
      });
    }
    report.exact("mean", y, once, [&] {
      launch_mean<T>(matrix.pointers(), total.data(), columns, planes(x), planes(y), planes(parts),
                     nullptr);
    });
    report.exact("mean-gradient", y, once, [&] {
      launch_mean_gradient<T>(transposed.pointers(), total.data(), columns, planes(x), planes(y),
                              planes(parts), nullptr);
    });
    report.exact("max", best, once, [&] {
      launch_max<T>(matrix.pointers(), columns, planes(x), planes(best), planes(parts), nullptr);
    });
    report.exact("max-shares", share, bytes(entries + 3 * rows), [&] {
      launch_max_shares<T>(matrix.pointers(), columns, planes(x), planes(best), planes(gradient),
                           planes(share), planes(parts), nullptr);
    });
    report.exact("max-gradient", y, bytes(2 * entries + 2 * rows), [&] {
      launch_max_gradient<T>(transposed.pointers(), columns, planes(x), planes(best), planes(share),
                             planes(y), planes(parts), nullptr);
    });
    const Array<T> sum = plane<T>(1),
                   sum_parts = plane<T>(std::max<std::int64_t>(summed_parts(rows), 1));
    report.exact("sum-of-rows", sum, bytes(rows), [&] {
      launch_sum_of_rows<T>(rows, columns, planes(x), planes(sum), planes(sum_parts), nullptr);
    });
  }

  void single_rows() {
    const std::int64_t rows = shape.rows;
    std::vector<std::int32_t> indices;
    std::vector<std::uint64_t> keys, members;
    for (std::int64_t row = 0; row < rows; ++row) {
      indices.push_back(static_cast<std::int32_t>(draw.below(rows)));
      keys.push_back(static_cast<std::uint64_t>(draw.below(1 << 30)) << 20);
    }
    for (std::int64_t m = 0; m < shape.members; ++m)
      members.push_back(static_cast<std::uint64_t>(m) * 77 + 5);
    const Array<std::int32_t> index(indices);
    const Array<std::uint64_t> key(keys);
    const Array<T> x = drawn(rows), y = plane<T>(rows);
    const TakenRows<T> terms[]{{index.data(), planes(x)}, {nullptr, planes(x)}};
    report.exact("take", y, bytes(2 * rows),
                 [&] { launch_take<T>(terms, 1, rows, columns, planes(y), nullptr); });
    report.exact("take-two", y, bytes(3 * rows),
                 [&] { launch_take<T>(terms, 2, rows, columns, planes(y), nullptr); });
    for (const bool whole : {false, true}) {
      report.exact(whole ? "drop-rows" : "drop-channels", y, bytes(2 * rows), [&] {
        launch_drop<T>(whole, rows, columns, 0.3, members.data(), 2, key.data(), planes(x),
                       planes(y), nullptr);
      });
    }
  }

  void groups() {
    const std::int64_t rows = shape.rows, count = shape.longest > 4 ? 3 : (rows + 5) / 6;
    std::vector<std::int32_t> of_rows;
    std::vector<float> counts;
    std::vector<double> sizes(static_cast<std::size_t>(count));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t group = row < count ? row : draw.below(count);
      of_rows.push_back(static_cast<std::int32_t>(group));
      counts.push_back(0.7f * static_cast<float>(1 + draw.below(3)));
      sizes[static_cast<std::size_t>(group)] += double{counts.back()};
    }
    Csr csr = transpose_index(of_rows, count);
    csr.weight.clear();
    const Matrix matrix(std::move(csr));
    const Array<std::int32_t> of_row(of_rows);
    const Array<float> weight(counts);
    const Array<double> size(sizes);
    const GroupPointers pointers{matrix.pointers(), of_row.data(), weight.data(), size.data(),
                                 rows};
    const Array<T> x = drawn(rows), d_y = drawn(rows), shift = drawn(1), y = plane<T>(rows);
    const Array<double> mean = plane<double>(count), scale = plane<double>(count),
                        along = plane<double>(count), constant = plane<double>(count),
                        d_shift = plane<double>(count), parts = plane<double>(matrix.parts());
    report.exact("group-statistics", scale, 2 * bytes(rows), [&] {
      launch_group_statistics<T>(pointers, columns, planes(x), planes(shift), 1e-5, planes(mean),
                                 planes(scale), planes(parts), nullptr);
    });
    report.exact("normalise", y, bytes(2 * rows), [&] {
      launch_normalise<T>(pointers, columns, planes(x), planes(shift), planes(mean), planes(scale),
                          planes(y), nullptr);
    });
    const NormGradient gradient{planes(along), planes(constant), planes(d_shift)};
    report.exact("norm-sums", along, bytes(4 * rows), [&] {
      launch_norm_sums<T>(pointers, columns, planes(x), planes(d_y), planes(shift), planes(mean),
                          planes(scale), gradient, planes(parts), nullptr);
    });
    report.exact("norm-gradient", y, bytes(3 * rows), [&] {
      launch_norm_gradient<T>(pointers, columns, planes(x), planes(d_y), planes(shift),
                              planes(mean), planes(scale), gradient, planes(y), nullptr);
    });
    std::vector<T> divisors;
    for (std::int64_t m = 0; m < shape.members; ++m)
      divisors.push_back(T(0.5) + T(0.25) * static_cast<T>(m));
    const Array<T> divisor(divisors), top = plane<T>(count), share = plane<T>(rows);
    const Array<double> sum = plane<double>(count), whole = plane<double>(count),
                        d_temperature = plane<double>(count);
    report.near("softmax-sums", sum, bytes(rows), [&] {
      launch_softmax_sums<T>(pointers, columns, planes(x), planes(divisor), planes(top),
                             planes(sum), planes(parts), nullptr);
    });
    report.near("softmax-gate", y, bytes(3 * rows), [&] {
      launch_softmax_gate<T>(pointers, columns, planes(x), planes(divisor), planes(top),
                             planes(sum), planes(share), planes(y), nullptr);
    });
    report.near("softmax-gradient-sums", whole, bytes(3 * rows), [&] {
      launch_softmax_gradient_sums<T>(pointers, columns, planes(x), planes(share), planes(d_y),
                                      planes(divisor), planes(whole), planes(d_temperature),
                                      planes(parts), nullptr);
    });
    report.near("softmax-gradient", y, bytes(4 * rows), [&] {
      launch_softmax_gradient<T>(pointers, columns, planes(x), planes(share), planes(d_y),
                                 planes(divisor), planes(whole), planes(y), nullptr);
    });
  }

  void readout() {
    const std::int64_t rows = shape.rows, cells = rows / 2 + 1, configs = rows / 8 + 2,
                       slates = std::max<std::int64_t>(3, configs / 100);
    const Matrix of_cells(draw_csr(cells, rows, shape.longest, true, draw)),
        of_common(draw_csr(slates, rows, shape.longest, true, draw)),
        of_scores(draw_csr(configs, cells, 4, true, draw));
    const Matrix rows_of_cells(transpose(of_cells.host, rows)),
        rows_of_common(transpose(of_common.host, rows)),
        configs_of_cell(transpose(of_scores.host, cells));
    std::vector<std::int32_t> slate_of;
    std::vector<double> node_counts;
    for (std::int64_t k = 0; k < configs; ++k) {
      slate_of.push_back(static_cast<std::int32_t>(draw.below(slates)));
      node_counts.push_back(0.7 * static_cast<double>(1 + draw.below(50)));
    }
    const Matrix configs_of_slate(transpose_index(slate_of, slates));
    const Array<std::int32_t> slate(slate_of);
    const Array<double> nodes(node_counts);
    const ReadoutPointers pointers{of_cells.pointers(),
                                   rows_of_cells.pointers(),
                                   of_common.pointers(),
                                   rows_of_common.pointers(),
                                   of_scores.pointers(),
                                   configs_of_cell.pointers(),
                                   configs_of_slate.pointers(),
                                   slate.data(),
                                   nodes.data()};
    const Array<T> x = drawn(rows), d_x = plane<T>(rows);
    const auto doubles = [&](std::int64_t count) { return plane<double>(count); };
    const Array<double> cell = doubles(cells), common = doubles(slates), ties = doubles(cells),
                        common_ties = doubles(slates), share = doubles(cells),
                        common_share = doubles(slates), y = doubles(configs),
                        part = doubles(configs),
                        parts = doubles(std::max(of_cells.parts(), of_common.parts()));
    const Array<double> d_y(draw.numbers<double>(configs * shape.width * shape.members));
    const ReadoutParts sums{planes(cell), planes(common)}, tied{planes(ties), planes(common_ties)},
        shares{planes(share), planes(common_share)};
    const std::int64_t scored = of_scores.host.entries(), taken = of_cells.host.entries();
    launch_aggregate(of_cells.pointers(), columns, planes(x), planes(cell), planes(parts), nullptr);
    launch_aggregate(of_common.pointers(), columns, planes(x), planes(common), planes(parts),
                     nullptr);
    report.exact("read-out", y, bytes<double>(scored + 2 * configs),
                 [&] { launch_read_out(pointers, columns, sums, true, planes(y), nullptr); });
    report.exact("spread-scores", cell, bytes<double>(scored + cells), [&] {
      launch_spread_scores(pointers, columns, planes(d_y), true, sums, nullptr);
    });
    report.exact("spread-parts", d_x, bytes<double>(taken) + bytes(rows),
                 [&] { launch_spread_parts<T>(pointers, columns, sums, planes(d_x), nullptr); });
    report.exact("pool-max", cell, bytes(taken) + bytes<double>(2 * cells), [&] {
      launch_pool_max<T>(of_cells.pointers(), columns, planes(x), planes(cell), planes(ties),
                         planes(parts), nullptr);
    });
    launch_pool_max<T>(of_common.pointers(), columns, planes(x), planes(common),
                       planes(common_ties), planes(parts), nullptr);
    report.exact("read-out-max", y, bytes<double>(scored + 2 * configs),
                 [&] { launch_read_out_max(pointers, columns, sums, planes(y), nullptr); });
    report.exact("max-parts", part, bytes<double>(2 * scored + 5 * configs), [&] {
      launch_max_parts(pointers, columns, sums, tied, planes(y), planes(d_y), planes(part),
                       nullptr);
    });
    report.exact("max-parts-of", share, bytes<double>(2 * scored + 2 * cells), [&] {
      launch_max_parts_of(pointers.configs_of_cell, columns, planes(cell), planes(y), planes(part),
                          planes(share), nullptr);
    });
    launch_max_parts_of(pointers.configs_of_slate, columns, planes(common), planes(y), planes(part),
                        planes(common_share), nullptr);
    report.exact("spread-shares", d_x, bytes<double>(2 * taken) + bytes(2 * rows), [&] {
      launch_spread_shares<T>(pointers, columns, planes(x), sums, shares, planes(d_x), nullptr);
    });
  }

  // The leaves of each member, but one of them without any, are added from the first to the last.
  void leaves() {
    const std::int64_t each = 7, length = shape.width * (shape.rows / 7 + 1);
    const auto members = static_cast<std::int32_t>(shape.members);
    std::vector<std::int32_t> begin{0}, sum, pairs;
    for (std::int32_t m = 0; m < members; ++m) {
      const bool has = m != 1;
      sum.push_back(has ? m * static_cast<std::int32_t>(each) : -1);
      for (std::int32_t i = 1; has && i < each; ++i) {
        pairs.push_back(m * static_cast<std::int32_t>(each));
        pairs.push_back(m * static_cast<std::int32_t>(each) + i);
      }
      begin.push_back(static_cast<std::int32_t>(pairs.size() / 2));
    }
    begin.insert(begin.end(), sum.begin(), sum.end());
    begin.insert(begin.end(), pairs.begin(), pairs.end());
    const Array<std::int32_t> plan(begin);
    const Array<float> rows(draw.numbers<float>(members * each * length)),
        sums(static_cast<std::int64_t>(members) * length);
    report.exact(
        "leaf-sums", sums, kSize<float> * static_cast<double>(members * (each + 1) * length),
        [&] { launch_leaf_sums(members, length, plan.data(), rows.data(), sums.data(), nullptr); });
  }

  void weights() {
    for (const std::int64_t in : {12, 128}) {
      const WeightGradientSizes sizes{shape.rows, in, shape.width, in == 12};
      const Array<float> x(draw.numbers<float>(shape.rows * in * shape.members)),
          d_y = drawn(shape.rows), y(sizes.numbers() * shape.members),
          parts(sizes.numbers() * sizes.chunks() * shape.members);
      report.exact(in == 12 ? "weight-gradient-12" : "weight-gradient-128", y, 0, [&] {
        launch_weight_gradient(sizes, sizes.chunks(), shape.members, {}, planes(x), planes(d_y),
                               planes(y), planes(parts), nullptr);
      });
    }
  }

  void double_product() {
    const Array<double> x(draw.numbers<double>(shape.rows * shape.width * shape.members)),
        weight(draw.numbers<double>(shape.width * 3 * shape.members)),
        y(shape.rows * 3 * shape.members);
    report.exact("double-product", y, 0, [&] {
      launch_double_product(shape.rows, shape.width, {3, shape.members},
                            {planes(x), shape.width, 1}, {planes(weight), 3, 1}, planes(y),
                            nullptr);
    });
  }

  void run() {
    sums_and_maxima();
    single_rows();
    groups();
    readout();
    if constexpr (sizeof(T) == 4) leaves();
    if (report.times()) return;  // arithmetic limits products, not memory: device_check times them
    if constexpr (sizeof(T) == 4) {
      weights();
    } else {
      double_product();
    }
  }

  const Shape shape;
  Report& report;
  Draw draw;
  const Columns columns;
};

// The numbers behind "~" may differ by 1e-6 of themselves, in double by 1e-8: they have nine digits.
bool is_near(const std::string& expected, const std::string& actual, bool in_double) {
  if (expected == actual) return true;
  std::istringstream all(expected), own(actual);
  std::string a, b;
  while (all >> a) {
    if (!(own >> b) || a[0] != '~' || b[0] != '~') return false;
    const double value = std::stod(a.substr(1));
    const double most = (in_double ? 1e-8 : 1e-6) * (1 + std::abs(value));
    if (!(std::abs(value - std::stod(b.substr(1))) <= most)) return false;
  }
  return true;
}

// Returns how many lines differ, and prints them.
int compare(const std::map<std::string, std::string>& lines, const char* path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::failed, std::string("cannot read ") + path);
  int different = 0;
  std::map<std::string, std::string> expected;
  for (std::string kernel, shape, rest;
       file >> kernel >> shape && std::getline(file >> std::ws, rest);)
    expected[kernel + " " + shape] = rest;
  const auto tell = [&](const std::string& name, const std::string& own, const std::string& other) {
    std::printf("%s: %s, expected %s\n", name.c_str(), own.c_str(), other.c_str());
    ++different;
  };
  for (const auto& [name, own] : lines) {
    const auto found = expected.find(name);
    const std::string other = found == expected.end() ? "nothing" : found->second;
    if (!is_near(other, own, name.ends_with("double"))) tell(name, own, other);
  }
  for (const auto& [name, other] : expected) {
    if (!lines.contains(name)) tell(name, "nothing", other);
  }
  std::printf("%zu results of kernels, %d differ\n", lines.size(), different);
  return different;
}

int run(int argc, char** argv) {
  const bool times = argc > 1 && std::string(argv[1]) == "--time";
  Report report(times);
  if (times) {
    Case<float>({100'000, 128, 4, 4}, report).run();
    Case<float>({100'000, 320, 2, 2000}, report).run();
    std::printf("%d too slow\n", report.slow());
    return report.slow() == 0 ? 0 : 1;
  }
  for (const Shape& shape : std::vector<Shape>{
           {40, 1, 1, 4}, {300, 7, 1, 4}, {257, 64, 3, 700}, {90, 320, 2, 300}, {33, 129, 5, 4}}) {
    Case<float>(shape, report).run();
    Case<double>(shape, report).run();
  }
  if (argc > 1) return compare(report.lines(), argv[1]) == 0 ? 0 : 1;
  for (const auto& [name, result] : report.lines())
    std::printf("%s %s\n", name.c_str(), result.c_str());
  return 0;
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  try {
    return tpudist::run(argc, argv);
  } catch (const tpudist::Error& error) {
    std::fprintf(stderr, "kernel_check: %s\n", error.what());
    return 1;
  }
}
