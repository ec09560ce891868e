#include "models/device/device_kernels.hpp"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include "models/operators/backend.hpp"

#ifdef TPUDIST_WITH_CUDA_KERNELS
#include <c10/cuda/CUDAStream.h>
#endif

namespace tpudist {

CUstream_st* stream_of([[maybe_unused]] const at::Tensor& x) {
#ifdef TPUDIST_WITH_CUDA_KERNELS
  if (x.is_cuda()) return c10::cuda::getCurrentCUDAStream(x.get_device()).stream();
#endif
  return nullptr;
}

at::Tensor parts_of(const CsrPointers& matrix, const at::Tensor& x, at::ScalarType type,
                    std::int64_t replicas) {
  const std::int64_t chunks = matrix.long_rows.chunks;
  if (chunks == 0) return {};
  return make_rows(x.size(0), 2 * chunks, replicas * x.size(2), x.options().dtype(type));
}

at::Tensor summed_rows(const at::Tensor& x) {
  const std::int64_t rows = x.size(1), kept = summed_parts(rows);
  const at::Tensor sums = at::empty({x.size(0), x.size(2)}, x.options()),
                   parts = kept > 0 ? rows_like(x, kept) : at::Tensor();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "summed_rows", [&] {
    launch_sum_of_rows(rows, columns_of(x), planes_of<scalar_t>(x),
                       mutable_planes_of<scalar_t>(sums), mutable_planes_of<scalar_t>(parts),
                       stream_of(x));
  });
  return sums;
}

}  // namespace tpudist
