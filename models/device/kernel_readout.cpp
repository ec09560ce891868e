#include "models/device/device_kernels.hpp"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "models/operators/backend.hpp"

namespace tpudist {
namespace {

at::Tensor doubles_like(const at::Tensor& x, std::int64_t rows) {
  return make_rows(x.size(0), rows, x.size(2), x.options().dtype(at::kDouble));
}

// The numbers of cells and slates, [M, cells, C] and [M, slates, C] in double.
struct Parts {
  Parts(const ReadoutPointers& readout, const at::Tensor& x)
      : cells(doubles_like(x, readout.cells.rows)), common(doubles_like(x, readout.common.rows)) {}
  ReadoutParts pointers() const {
    return {mutable_planes_of<double>(cells), mutable_planes_of<double>(common)};
  }
  at::Tensor cells, common;
};

// The largest rows of all cells and slates, and how many nodes reach them.
struct Maxima {
  Maxima(const ReadoutPointers& readout, const at::Tensor& x) : best(readout, x), ties(readout, x) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "segment_max_of_parts", [&] {
      const auto pool = [&](const CsrPointers& matrix, const at::Tensor& most,
                            const at::Tensor& reached) {
        launch_pool_max(matrix, columns_of(x), planes_of<scalar_t>(x),
                        mutable_planes_of<double>(most), mutable_planes_of<double>(reached),
                        mutable_planes_of<double>(parts_of(matrix, x, at::kDouble)), stream_of(x));
      };
      pool(readout.cells, best.cells, ties.cells);
      pool(readout.common, best.common, ties.common);
    });
  }
  Parts best, ties;
};

}  // namespace

at::Tensor pool_by_kernels(const ReadoutPointers& readout, const at::Tensor& x,
                           Aggregation aggregation) {
  const at::Tensor y = doubles_like(x, readout.scores.rows);
  const Planes<double> out = mutable_planes_of<double>(y);
  if (aggregation == Aggregation::max) {
    const Maxima maxima(readout, x);
    launch_read_out_max(readout, columns_of(x), maxima.best.pointers(), out, stream_of(x));
    return y;
  }
  const Parts sums(readout, x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool", [&] {
    const auto add_up = [&](const CsrPointers& matrix, const at::Tensor& sum) {
      launch_aggregate(matrix, columns_of(x), planes_of<scalar_t>(x),
                       mutable_planes_of<double>(sum),
                       mutable_planes_of<double>(parts_of(matrix, x, at::kDouble)), stream_of(x));
    };
    add_up(readout.cells, sums.cells);
    add_up(readout.common, sums.common);
  });
  launch_read_out(readout, columns_of(x), sums.pointers(), aggregation == Aggregation::mean, out,
                  stream_of(x));
  return y;
}

at::Tensor pool_gradient_by_kernels(const ReadoutPointers& readout, const at::Tensor& x,
                                    const at::Tensor& y, const at::Tensor& d_y,
                                    Aggregation aggregation) {
  const Columns columns = columns_of(x);
  const at::Tensor d_x = rows_like(x);
  const Planes<const double> d = planes_of<double>(d_y);
  const Parts parts(readout, x);
  if (aggregation != Aggregation::max) {
    launch_spread_scores(readout, columns, d, aggregation == Aggregation::mean, parts.pointers(),
                         stream_of(x));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool_gradient", [&] {
      launch_spread_parts(readout, columns, parts.pointers(), mutable_planes_of<scalar_t>(d_x),
                          stream_of(x));
    });
    return d_x;
  }
  const Maxima maxima(readout, x);
  const ReadoutParts best = maxima.best.pointers(), share = parts.pointers();
  const Planes<const double> top = planes_of<double>(y);
  const at::Tensor of_config = rows_like(d_y);
  const Planes<double> part = mutable_planes_of<double>(of_config);
  launch_max_parts(readout, columns, best, maxima.ties.pointers(), top, d, part, stream_of(x));
  launch_max_parts_of(readout.configs_of_cell, columns, best.cells, top, part, share.cells,
                      stream_of(x));
  launch_max_parts_of(readout.configs_of_slate, columns, best.common, top, part, share.common,
                      stream_of(x));
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool_gradient", [&] {
    launch_spread_shares(readout, columns, planes_of<scalar_t>(x), best, share,
                         mutable_planes_of<scalar_t>(d_x), stream_of(x));
  });
  return d_x;
}

}  // namespace tpudist
