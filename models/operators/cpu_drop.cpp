#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "models/kernels/cpu_blocks.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/vector_loops.hpp"

namespace tpudist {
namespace {

// Writes y = x, or y = x * 0 where the row was drawn. 16 bits decide.
template <typename T>
void drop_row(const DropoutDraw& draw, std::int64_t row, std::int64_t member, std::int64_t channels,
              const T* x, T* y) {
  const std::uint64_t row_key = draw.row_keys[row], member_key = draw.member_keys[member];
  PhiloxWords bits;
  philox({static_cast<std::uint32_t>(row_key), static_cast<std::uint32_t>(row_key >> 32),
          draw.layer, 0},
         {static_cast<std::uint32_t>(member_key), static_cast<std::uint32_t>(member_key >> 32)},
         bits);
  const bool lost = static_cast<long>(bits[0][0] & 0xffffu) < std::lround(draw.rate * 65536);
  for (std::int64_t c = 0; c < channels; ++c) y[c] = lost ? x[c] * T{0} : x[c];
}

// Writes y = x with the channels that were drawn set to 0 and the others divided by what is kept.
// 16 bits decide about a channel: a lane of Philox decides eight, one half word after another.
template <typename T>
void drop_channels(const DropoutDraw& draw, std::int64_t row, std::int64_t member,
                   std::int64_t channels, const T* x, T* y) {
  const auto limit = static_cast<std::uint32_t>(std::lround(draw.rate * 65536));
  const T scale = static_cast<T>(1 / (1 - draw.rate));
  const std::uint64_t row_key = draw.row_keys[row], member_key = draw.member_keys[member];
  const PhiloxKey key{static_cast<std::uint32_t>(member_key),
                      static_cast<std::uint32_t>(member_key >> 32)};
  constexpr std::int64_t kAtOnce = 8 * kPhiloxLanes;
  PhiloxWords bits;
  for (std::int64_t first = 0; first < channels; first += kAtOnce) {
    philox({static_cast<std::uint32_t>(row_key), static_cast<std::uint32_t>(row_key >> 32),
            draw.layer, static_cast<std::uint32_t>(first / 8)},
           key, bits);
    // Half word h of the lanes decides about the channels from first + h * lanes on.
    for (std::int64_t half = 0; half < 8; ++half) {
      const std::int64_t begin = first + half * kPhiloxLanes;
      if (begin >= channels) break;
      keep_lanes(bits[half / 2].data(), static_cast<int>(16 * (half % 2)), limit, x + begin, scale,
                 static_cast<int>(std::min<std::int64_t>(kPhiloxLanes, channels - begin)),
                 y + begin);
    }
  }
}

}  // namespace

at::Tensor CpuBackend::drop(const at::Tensor& x, const DropoutDraw& draw) const {
  at::Tensor y = rows_like(x);
  const std::int64_t channels = x.size(2);
  for_row_blocks(pool_, x.size(1), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "drop_rows", [&] {
      const auto drop =
          draw.dropped == Dropped::rows ? drop_row<scalar_t> : drop_channels<scalar_t>;
      for (std::int64_t m = 0; m < x.size(0); ++m) {
        for (std::int64_t i = first; i < first + count; ++i)
          drop(draw, i, m, channels, plane<scalar_t>(x, m) + i * channels,
               mutable_plane<scalar_t>(y, m) + i * channels);
      }
    });
  });
  return y;
}

}  // namespace tpudist
