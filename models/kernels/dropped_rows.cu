#include "models/kernels/row_launches.hpp"

#include <cmath>

#include "core/philox.hpp"
#include "models/kernels/cuda_rows.hpp"

namespace tpudist {
namespace {

// The channels decided together by one block of lanes, and the number of lanes
// (models/operators/cpu_drop.cpp): lane l decides channels l, l + 16, ... l + 112, with consecutive
// half words of its 128 bits.
constexpr std::int64_t kAtOnce = 128, kLanes = 16;

struct Words {
  std::uint32_t of[4];
};

__device__ Words philox(Words counter, std::uint64_t key) {
  PhiloxKey own{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
#pragma unroll
  for (int round = 0; round < kPhiloxRounds; ++round, own.advance())
    philox_round(counter.of[0], counter.of[1], counter.of[2], counter.of[3], own);
  return counter;
}

// One thread for each row and lane; lanes are columns.
template <typename T, bool kWholeRows>
struct Drop {
  std::int64_t channels;
  std::uint32_t layer, limit;
  T scale;
  const std::uint64_t* row_keys;
  Planes<const T> x;
  Planes<T> y;
  std::uint64_t key;

  __device__ void select(std::int64_t member) { cuda_rows::move_to(member, x, y); }
  template <int N>
  __device__ void run(std::int64_t row, std::int64_t lane) const {
    const std::uint64_t row_key = __ldg(row_keys + row);
    const auto counter = kWholeRows ? 0u : static_cast<std::uint32_t>(lane);
    const Words bits = philox({{static_cast<std::uint32_t>(row_key),
                                static_cast<std::uint32_t>(row_key >> 32), layer, counter}},
                              key);
    const std::int64_t begin = lane / kLanes * kAtOnce + lane % kLanes, own = row * channels;
#pragma unroll
    for (int half = 0; half < 8; ++half) {
      const std::int64_t channel = begin + half * kLanes;
      if (channel >= channels) break;
      const int word = kWholeRows ? 0 : half / 2, shift = kWholeRows ? 0 : 16 * (half % 2);
      const std::uint32_t value = (bits.of[word] >> shift) & 0xFFFFu;
      // A product, so that dropping NaN or infinity gives NaN.
      y[own + channel] = x[own + channel] * (value < limit ? T{0} : scale);
    }
  }
};

template <bool kWholeRows, typename T>
void launch_draw(std::int64_t rows, Columns columns, double rate, const std::uint64_t* member_keys,
                 std::uint32_t layer, const std::uint64_t* row_keys, Planes<const T> x, Planes<T> y,
                 CUstream_st* stream) {
  Drop<T, kWholeRows> work{};
  work.channels = columns.width;
  work.layer = layer;
  work.limit = static_cast<std::uint32_t>(std::lround(rate * 65536));
  work.scale = kWholeRows ? T{1} : static_cast<T>(1 / (1 - rate));
  work.row_keys = row_keys;
  const std::int64_t lanes = (columns.width + kAtOnce - 1) / kAtOnce * kLanes;
  for (std::int64_t m = 0; m < columns.members; ++m) {
    work.key = member_keys[m];
    work.x = x.data + m * x.distance;
    work.y = y.data + m * y.distance;
    cuda_rows::launch<1>(rows, lanes, work, stream);
  }
}

}  // namespace

template <typename T>
void launch_drop(bool whole_rows, std::int64_t rows, Columns columns, double rate,
                 const std::uint64_t* member_keys, std::uint32_t layer,
                 const std::uint64_t* row_keys, Planes<const T> x, Planes<T> y,
                 CUstream_st* stream) {
  const auto draw = whole_rows ? launch_draw<true, T> : launch_draw<false, T>;
  draw(rows, columns, rate, member_keys, layer, row_keys, x, y, stream);
}

#define TPUDIST_FOR(T)                                                                       \
  template void launch_drop(bool, std::int64_t, Columns, double, const std::uint64_t*,       \
                            std::uint32_t, const std::uint64_t*, Planes<const T>, Planes<T>, \
                            CUstream_st*)
TPUDIST_FOR(float);
TPUDIST_FOR(double);
#undef TPUDIST_FOR

}  // namespace tpudist
