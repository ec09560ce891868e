#include "models/operators/kernel_readout.hpp"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "models/operators/backend.hpp"
#include "models/operators/kernel_stream.hpp"

namespace tpudist {
namespace {

// The numbers of cells and slates, [cells, width] and [slates, width] in double.
struct Parts {
  Parts(const ReadoutPointers& readout, const at::Tensor& x)
      : cells(at::empty({readout.cells.rows, columns(x)}, x.options().dtype(at::kDouble))),
        common(at::empty({readout.common.rows, columns(x)}, cells.options())) {}
  ReadoutParts pointers() const {
    return {cells.mutable_data_ptr<double>(), common.mutable_data_ptr<double>()};
  }
  at::Tensor cells, common;
};

// The largest rows of all cells and slates, and how many nodes reach them.
struct Maxima {
  Maxima(const ReadoutPointers& readout, const at::Tensor& x) : best(readout, x), ties(readout, x) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "segment_max_of_parts", [&] {
      const scalar_t* const in = x.const_data_ptr<scalar_t>();
      launch_pool_max(readout.cells, columns(x), in, best.pointers().cells, ties.pointers().cells,
                      stream_of(x));
      launch_pool_max(readout.common, columns(x), in, best.pointers().common,
                      ties.pointers().common, stream_of(x));
    });
  }
  Parts best, ties;
};

}  // namespace

at::Tensor pool_by_kernels(const ReadoutPointers& readout, const at::Tensor& x,
                           Aggregation aggregation) {
  const at::Tensor y =
      at::empty({readout.scores.rows, x.size(1), x.size(2)}, x.options().dtype(at::kDouble));
  double* const out = y.mutable_data_ptr<double>();
  if (aggregation == Aggregation::max) {
    const Maxima maxima(readout, x);
    launch_read_out_max(readout, columns(x), maxima.best.pointers(), out, stream_of(x));
    return y;
  }
  const Parts sums(readout, x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool", [&] {
    const scalar_t* const in = x.const_data_ptr<scalar_t>();
    launch_aggregate(readout.cells, columns(x), in, sums.pointers().cells, stream_of(x));
    launch_aggregate(readout.common, columns(x), in, sums.pointers().common, stream_of(x));
  });
  launch_read_out(readout, columns(x), sums.pointers(), aggregation == Aggregation::mean, out,
                  stream_of(x));
  return y;
}

at::Tensor pool_gradient_by_kernels(const ReadoutPointers& readout, const at::Tensor& x,
                                    const at::Tensor& y, const at::Tensor& d_y,
                                    Aggregation aggregation) {
  const std::int64_t width = columns(x);
  const at::Tensor d_x = at::empty_like(x);
  const double* const d = d_y.const_data_ptr<double>();
  const Parts parts(readout, x);
  if (aggregation != Aggregation::max) {
    launch_spread_scores(readout, width, d, aggregation == Aggregation::mean, parts.pointers(),
                         stream_of(x));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool_gradient", [&] {
      launch_spread_parts(readout, width, parts.pointers(), d_x.mutable_data_ptr<scalar_t>(),
                          stream_of(x));
    });
    return d_x;
  }
  const Maxima maxima(readout, x);
  const ReadoutParts best = maxima.best.pointers(), share = parts.pointers();
  const double* const top = y.const_data_ptr<double>();
  const at::Tensor of_config = at::empty_like(d_y);
  double* const part = of_config.mutable_data_ptr<double>();
  launch_max_parts(readout, width, best, maxima.ties.pointers(), top, d, part, stream_of(x));
  launch_max_parts_of(readout.configs_of_cell, width, best.cells, top, part, share.cells,
                      stream_of(x));
  launch_max_parts_of(readout.configs_of_slate, width, best.common, top, part, share.common,
                      stream_of(x));
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool_gradient", [&] {
    launch_spread_shares(readout, width, x.const_data_ptr<scalar_t>(), best, share,
                         d_x.mutable_data_ptr<scalar_t>(), stream_of(x));
  });
  return d_x;
}

}  // namespace tpudist
