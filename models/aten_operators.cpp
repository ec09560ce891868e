#include "models/aten_operators.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/zeros.h>

#include "models/aggregate.hpp"
#ifdef TPUDIST_WITH_CUDA_KERNELS
#include <c10/cuda/CUDAStream.h>
#endif

namespace tpudist {
namespace {

at::Tensor copy_of(const void* data, std::int64_t size, at::ScalarType type, at::Device device) {
  if (size == 0) return at::empty({0}, at::TensorOptions(type).device(device));
  return at::from_blob(const_cast<void*>(data), {size}, type).to(device, type, false, true);
}

DeviceRelation to_device(const Relation& relation, at::Device device) {
  return {to_device(relation.in, device), to_device(relation.out, device), relation.lanes};
}

}  // namespace

at::Tensor to_device(const std::vector<std::int32_t>& values, at::Device device) {
  return copy_of(values.data(), values.size(), at::kInt, device).to(at::kLong);
}

DeviceCsr to_device(const Csr& csr, at::Device device) {
  return {copy_of(csr.begin.data(), csr.begin.size(), at::kLong, device),
          to_device(csr.source, device),
          csr.weight.empty() ? at::Tensor()
                             : copy_of(csr.weight.data(), csr.weight.size(), at::kFloat, device)};
}

DeviceStep to_device(const Step& step, at::Device device) {
  const auto selection = [&](const Selection& from) {
    DeviceSelection result;
    if (!from.identity()) result = {to_device(from.of, device), to_device(from.rows, device)};
    return result;
  };
  DeviceStep result;
  result.rows_in = step.rows_in;
  result.self = selection(step.self);
  for (const EdgeSet& edges : step.edges) {
    result.edges.push_back({to_device(edges.sum, device), selection(edges.group)});
  }
  return result;
}

DeviceGraph to_device(const GraphInput& graph, at::Device device) {
  const at::Tensor rows =
      copy_of(graph.feature_rows(), graph.nodes() * GraphInput::stride, at::kFloat, device);
  const std::vector<std::int32_t> opcode(graph.opcode().begin(), graph.opcode().end());
  return {rows.view({graph.nodes(), GraphInput::stride})
              .narrow(1, 0, GraphInput::features)
              .contiguous(),
          to_device(opcode, device)};
}

at::Tensor sparse_product(const DeviceCsr& matrix, std::int64_t lanes, const at::Tensor& x) {
  const std::int64_t width = x.size(1), rows = matrix.begin.size(0) - 1;
  if (matrix.source.size(0) == 0 || rows == 0) return at::zeros({rows * lanes, width}, x.options());
#ifdef TPUDIST_WITH_CUDA_KERNELS
  if (x.is_cuda()) {
    const at::Tensor in = x.contiguous();
    at::Tensor out = at::empty({rows * lanes, width}, x.options());
    launch_aggregate(matrix.begin.const_data_ptr<std::int64_t>(),
                     matrix.source.const_data_ptr<std::int64_t>(),
                     matrix.weight.defined() ? matrix.weight.const_data_ptr<float>() : nullptr,
                     rows, lanes * width, in.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
                     c10::cuda::getCurrentCUDAStream(x.get_device()).stream());
    return out;
  }
#endif
  at::Tensor picked = at::index_select(x.reshape({-1, lanes * width}), 0, matrix.source);
  if (matrix.weight.defined()) picked = picked * matrix.weight.unsqueeze(1);
  return at::segment_reduce(picked, "sum", {}, {}, matrix.begin, 0, true, 0)
      .view({rows * lanes, width});
}

at::Tensor select(const DeviceSelection& selection, const at::Tensor& things) {
  return selection.of.defined() ? at::index_select(things, 0, selection.of) : things;
}

at::Tensor sum_takers(const DeviceSelection& selection, const at::Tensor& rows) {
  return selection.of.defined() ? sparse_product(selection.rows, 1, rows) : rows;
}

}  // namespace tpudist
