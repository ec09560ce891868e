#include "models/operators/aten_operators.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <optional>

#include "models/kernels/aggregate.hpp"
#ifdef TPUDIST_WITH_CUDA_KERNELS
#include <c10/cuda/CUDAStream.h>
#endif

namespace tpudist {
namespace {

std::int64_t row_count(const DeviceCsr& matrix) {
  return matrix.begin.size(0) - 1;
}

// Kernels and segment_reduce want at least one entry.
bool empty(const DeviceCsr& matrix) {
  return row_count(matrix) == 0 || matrix.source.size(0) == 0;
}

// The number of entries of each row, and the row of each entry.
at::Tensor lengths(const DeviceCsr& matrix) {
  const std::int64_t rows = row_count(matrix);
  return matrix.begin.narrow(0, 1, rows) - matrix.begin.narrow(0, 0, rows);
}
at::Tensor row_of_entry(const DeviceCsr& matrix) {
  return at::repeat_interleave(lengths(matrix), std::optional(matrix.source.size(0)));
}

at::Tensor sum_entries(const DeviceCsr& matrix, const at::Tensor& terms) {
  return at::segment_reduce(terms, "sum", {}, {}, matrix.begin, 0, true, 0);
}

at::Tensor weighted(const DeviceCsr& matrix, const at::Tensor& terms) {
  return matrix.weight.defined() ? terms * matrix.weight.unsqueeze(1) : terms;
}

#ifdef TPUDIST_WITH_CUDA_KERNELS
CsrPointers pointers(const DeviceCsr& matrix) {
  return {matrix.begin.const_data_ptr<std::int64_t>(), matrix.source.const_data_ptr<std::int32_t>(),
          matrix.weight.defined() ? matrix.weight.const_data_ptr<float>() : nullptr,
          row_count(matrix)};
}

CUstream_st* current_stream_of(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.get_device()).stream();
}

at::Tensor spmm_by_kernel(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x,
                          at::ScalarType type) {
  const std::int64_t width = x.size(1);
  const at::Tensor in = x.contiguous();
  const at::Tensor out = at::empty({row_count(matrix) * replicas, width}, x.options().dtype(type));
  const float* const from = in.const_data_ptr<float>();
  if (type == at::kBFloat16) {
    launch_aggregate(pointers(matrix), replicas * width, from,
                     reinterpret_cast<__nv_bfloat16*>(out.mutable_data_ptr()),
                     current_stream_of(x));
  } else {
    launch_aggregate(pointers(matrix), replicas * width, from, out.mutable_data_ptr<float>(),
                     current_stream_of(x));
  }
  return out;
}

at::Tensor max_by_kernel(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x) {
  const at::Tensor in = x.contiguous();
  const at::Tensor best = at::empty({row_count(matrix) * replicas, x.size(1)}, x.options());
  launch_max(pointers(matrix), replicas * x.size(1), in.const_data_ptr<float>(),
             best.mutable_data_ptr<float>(), current_stream_of(x));
  return best;
}

at::Tensor max_gradient_by_kernels(const DeviceSparseMatrix& matrix, const at::Tensor& x,
                                   const at::Tensor& best, const at::Tensor& gradient) {
  const std::int64_t width = matrix.replicas * x.size(1);
  const at::Tensor from = x.contiguous(), most = best.contiguous(), up = gradient.contiguous();
  const at::Tensor share = at::empty_like(most), result = at::empty_like(from);
  launch_max_shares(pointers(matrix.forward), width, from.const_data_ptr<float>(),
                    most.const_data_ptr<float>(), up.const_data_ptr<float>(),
                    share.mutable_data_ptr<float>(), current_stream_of(x));
  launch_max_gradient(pointers(matrix.transposed), width, from.const_data_ptr<float>(),
                      most.const_data_ptr<float>(), share.const_data_ptr<float>(),
                      result.mutable_data_ptr<float>(), current_stream_of(x));
  return result;
}
#endif

}  // namespace

at::Tensor spmm(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x,
                at::ScalarType type) {
#ifdef TPUDIST_WITH_CUDA_KERNELS
  if (x.is_cuda() && !empty(matrix)) return spmm_by_kernel(matrix, replicas, x, type);
#endif
  return spmm_by_aten(matrix, replicas, x).to(type);
}

at::Tensor spmm_max(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x) {
#ifdef TPUDIST_WITH_CUDA_KERNELS
  if (x.is_cuda() && !empty(matrix)) return max_by_kernel(matrix, replicas, x);
#endif
  return spmm_max_by_aten(matrix, replicas, x);
}

at::Tensor spmm_max_backward(const DeviceSparseMatrix& matrix, const at::Tensor& x,
                             const at::Tensor& best, const at::Tensor& gradient) {
#ifdef TPUDIST_WITH_CUDA_KERNELS
  if (x.is_cuda() && !empty(matrix.forward))
    return max_gradient_by_kernels(matrix, x, best, gradient);
#endif
  return spmm_max_backward_by_aten(matrix, x, best, gradient);
}

at::Tensor spmm_by_aten(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x) {
  const std::int64_t width = x.size(1), rows = row_count(matrix) * replicas;
  if (empty(matrix)) return at::zeros({rows, width}, x.options());
  const at::Tensor picked = at::index_select(x.reshape({-1, replicas * width}), 0, matrix.source);
  return sum_entries(matrix, weighted(matrix, picked)).view({rows, width});
}

at::Tensor spmm_max_by_aten(const DeviceCsr& matrix, std::int64_t replicas, const at::Tensor& x) {
  const std::int64_t width = x.size(1), rows = row_count(matrix) * replicas;
  if (empty(matrix)) return at::zeros({rows, width}, x.options());
  const at::Tensor picked = at::index_select(x.reshape({-1, replicas * width}), 0, matrix.source);
  const at::Tensor best = at::segment_reduce(picked, "max", {}, {}, matrix.begin, 0, true);
  return best.masked_fill((lengths(matrix) == 0).unsqueeze(1), 0).view({rows, width});
}

at::Tensor spmm_max_backward_by_aten(const DeviceSparseMatrix& matrix, const at::Tensor& x,
                                     const at::Tensor& best, const at::Tensor& gradient) {
  if (empty(matrix.forward)) return at::zeros_like(x);
  const std::int64_t width = matrix.replicas * x.size(1);
  const at::Tensor from = x.reshape({-1, width}), most = best.reshape({-1, width});
  const auto tied = [](const at::Tensor& a, const at::Tensor& a_row, const at::Tensor& b,
                       const at::Tensor& b_row) {
    return at::index_select(a, 0, a_row) == at::index_select(b, 0, b_row);
  };
  const DeviceCsr &forward = matrix.forward, &transposed = matrix.transposed;
  const at::Tensor of_neighbourhood =
      tied(from, forward.source, most, row_of_entry(forward)).to(x.scalar_type());
  const at::Tensor ties = sum_entries(forward, weighted(forward, of_neighbourhood));
  const at::Tensor share = at::where(ties > 0, gradient.reshape({-1, width}) / ties, 0.0f);
  const at::Tensor of_row = tied(from, row_of_entry(transposed), most, transposed.source);
  const at::Tensor part = at::where(of_row, at::index_select(share, 0, transposed.source), 0.0f);
  return sum_entries(transposed, weighted(transposed, part)).view_as(x);
}

at::Tensor gather(const DeviceGatherIndex& index, const at::Tensor& x) {
  return index.index.defined() ? at::index_select(x, 0, index.index) : x;
}

at::Tensor gather_backward(const DeviceGatherIndex& index, const at::Tensor& rows,
                           at::ScalarType type) {
  return index.index.defined() ? spmm(index.transposed, 1, rows, type) : rows;
}

}  // namespace tpudist
