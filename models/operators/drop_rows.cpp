#include "models/operators/drop_rows.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "models/operators/device_operators.hpp"
#include "models/operators/philox.hpp"
#include "models/operators/row_tasks.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What one call draws with.
struct Draw {
  double rate;
  std::vector<std::uint64_t> member_keys;
  std::uint32_t layer;
  std::span<const std::uint64_t> row_keys;
};

// Writes y = x with the channels that were drawn set to 0 and the others divided by what is kept.
// 16 bits decide about a channel: a lane of Philox serves eight, one half word after the other.
template <typename T>
void drop(const Draw& draw, std::int64_t row, std::int64_t member, std::int64_t channels,
          const T* x, T* y) {
  const auto limit = static_cast<std::uint32_t>(std::lround(draw.rate * 65536));
  const T scale = static_cast<T>(1 / (1 - draw.rate));
  const std::uint64_t row_key = draw.row_keys[row], member_key = draw.member_keys[member];
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(member_key),
                                         static_cast<std::uint32_t>(member_key >> 32)};
  constexpr std::int64_t kAtOnce = 8 * kPhiloxLanes;
  PhiloxWords bits;
  for (std::int64_t first = 0; first < channels; first += kAtOnce) {
    philox({static_cast<std::uint32_t>(row_key), static_cast<std::uint32_t>(row_key >> 32),
            draw.layer, static_cast<std::uint32_t>(first / 8)},
           key, bits);
    // Half word h of all lanes decides about channels first + h * lanes and following.
    for (std::int64_t half = 0; half < 8; ++half) {
      const std::int64_t begin = first + half * kPhiloxLanes;
      if (begin >= channels) break;
      keep_lanes(bits[half / 2].data(), static_cast<int>(16 * (half % 2)), limit, x + begin, scale,
                 static_cast<int>(std::min<std::int64_t>(kPhiloxLanes, channels - begin)),
                 y + begin);
    }
  }
}

at::Tensor drop_all(const at::Tensor& x, const Draw& draw, const Backend& backend) {
  if (backend.device)
    return backend.device->drop(x, draw.rate, draw.member_keys, draw.layer, draw.row_keys);
  at::Tensor y = at::empty_like(x);
  const std::int64_t members = x.size(1), channels = x.size(2);
  for_row_blocks(backend.pool, x.size(0), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "drop_rows", [&] {
      for (std::int64_t i = first * members; i < (first + count) * members; ++i) {
        drop(draw, i / members, i % members, channels, x.const_data_ptr<scalar_t>() + i * channels,
             y.mutable_data_ptr<scalar_t>() + i * channels);
      }
    });
  });
  return y;
}

// The mask is drawn again in the backward pass instead of being kept.
class DropRows : public torch::autograd::Function<DropRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            std::shared_ptr<const Draw> draw, const Backend& backend) {
    keep_backend(context, backend);
    context->saved_data["draw"] = keep(draw);
    return drop_all(x, *draw, backend);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto draw = kept<Draw>(context->saved_data["draw"]);
    return {drop_all(gradients[0].contiguous(), *draw, kept_backend(context)), {}, {}};
  }
};

}  // namespace

at::Tensor drop_rows(const at::Tensor& x, double rate, std::span<const std::uint64_t> member_keys,
                     std::uint32_t layer, std::span<const std::uint64_t> row_keys,
                     const Backend& backend) {
  if (static_cast<std::int64_t>(member_keys.size()) != x.size(1) ||
      static_cast<std::int64_t>(row_keys.size()) != x.size(0)) {
    throw Error(ErrorKind::failed, "drop_rows: keys do not fit the rows");
  }
  auto draw =
      std::make_shared<Draw>(Draw{rate, {member_keys.begin(), member_keys.end()}, layer, row_keys});
  return DropRows::apply(x.contiguous(), std::move(draw), backend);
}

}  // namespace tpudist
