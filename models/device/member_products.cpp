#include "models/device/device_kernels.hpp"

#ifdef TPUDIST_WITH_CUDA_KERNELS

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/core/DeviceGuard.h>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/failed_device.hpp"
#include "core/mutex.hpp"

namespace tpudist {
namespace {

void require(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  device_has_failed = true;
  throw Error(ErrorKind::failed, fmt::format("cuBLAS, {}: {} (status {})", what,
                                             cublasLtGetStatusString(status), int{status}));
}

// The algorithm is chosen for this many rows, whatever a product has: a row's bits must not depend
// on how many others are computed with it.
constexpr std::int64_t kRowsOfChoice = 4096;

// One product of row-major matrices is, for cuBLASLt, y^T = W^T rows^T, column by column.
struct Shape {
  std::int64_t rows, in, out;
  bool transposed, tf32, bf16;
  auto operator<=>(const Shape&) const = default;
};

// The operation and the layouts of a call; they hold no memory.
struct Call {
  Call(const Shape& shape, std::int64_t members, std::int64_t weight_distance,
       std::int64_t rows_distance, std::int64_t y_distance) {
    const cublasComputeType_t type = shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    require(cublasLtMatmulDescInit(&operation, type, CUDA_R_32F), "operation");
    const cublasOperation_t turned = shape.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    require(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                           sizeof turned),
            "transpose");
    const auto [high, wide] =
        shape.transposed ? std::pair(shape.in, shape.out) : std::pair(shape.out, shape.in);
    const cudaDataType_t operand = shape.bf16 ? CUDA_R_16BF : CUDA_R_32F;
    lay(weight, operand, high, wide, members, weight_distance);
    lay(rows, operand, shape.in, shape.rows, members, rows_distance);
    lay(y, CUDA_R_32F, shape.out, shape.rows, members, y_distance);
  }

  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t weight, rows, y;

 private:
  static void lay(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType_t type, std::int64_t high,
                  std::int64_t wide, std::int64_t members, std::int64_t distance) {
    const auto count = static_cast<std::int32_t>(members);
    require(cublasLtMatrixLayoutInit(&layout, type, static_cast<std::uint64_t>(high),
                                     static_cast<std::uint64_t>(wide), high),
            "layout");
    require(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                             sizeof count),
            "batch");
    require(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                             &distance, sizeof distance),
            "batch");
  }
};

// The handle of a device and the algorithms found on it. They live as long as the process: a handle
// must not be destroyed after an error of the device.
class Products {
 public:
  static Products& of_device(int device) {
    static Mutex mutex;
    static auto& all TPUDIST_GUARDED_BY(mutex) = *new std::map<int, Products>;
    const MutexLock lock(mutex);
    return all[device];
  }

  cublasLtHandle_t handle() const { return handle_; }

  // Undefined if there is none.
  std::optional<cublasLtMatmulAlgo_t> algorithm(Shape shape) {
    shape.rows = kRowsOfChoice;
    const MutexLock lock(mutex_);
    if (const auto known = found_.find(shape); known != found_.end()) return known->second;
    return found_[shape] = find(shape);
  }

 private:
  // The first algorithm that cuBLASLt proposes for one member and that also takes several.
  std::optional<cublasLtMatmulAlgo_t> find(const Shape& shape) const {
    Call alone(shape, 1, 0, 0, 0);
    const auto plane = [](std::int64_t numbers) { return (numbers + 127) / 128 * 128; };
    Call several(shape, 2, plane(shape.in * shape.out), plane(shape.rows * shape.in),
                 plane(shape.rows * shape.out));
    cublasLtMatmulPreferenceOpaque_t preference;
    require(cublasLtMatmulPreferenceInit(&preference), "preference");
    const std::uint32_t no_parts = CUBLASLT_REDUCTION_SCHEME_NONE;
    require(
        cublasLtMatmulPreferenceSetAttribute(
            &preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &no_parts, sizeof no_parts),
        "preference");
    std::array<cublasLtMatmulHeuristicResult_t, 8> named;
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, &alone.operation, &alone.weight, &alone.rows, &alone.y, &alone.y, &preference,
        int{named.size()}, named.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
    require(status, "choice of an algorithm");
    for (int i = 0; i < count; ++i) {
      const cublasLtMatmulHeuristicResult_t& one = named[static_cast<std::size_t>(i)];
      cublasLtMatmulHeuristicResult_t checked;
      if (one.state == CUBLAS_STATUS_SUCCESS &&
          cublasLtMatmulAlgoCheck(handle_, &several.operation, &several.weight, &several.rows,
                                  &several.y, &several.y, &one.algo,
                                  &checked) == CUBLAS_STATUS_SUCCESS &&
          checked.workspaceSize == 0)
        return one.algo;
    }
    return std::nullopt;
  }

  cublasLtHandle_t handle_ = [] {
    cublasLtHandle_t handle;
    require(cublasLtCreate(&handle), "handle");
    return handle;
  }();
  Mutex mutex_;
  std::map<Shape, std::optional<cublasLtMatmulAlgo_t>> found_ TPUDIST_GUARDED_BY(mutex_);
};

}  // namespace

bool multiply_members(const at::Tensor& rows, const at::Tensor& weight, bool transposed, bool tf32,
                      const at::Tensor& y) {
  const at::ScalarType type = rows.scalar_type();
  if (!rows.is_cuda() || y.scalar_type() != at::kFloat ||
      (type != at::kFloat && type != at::kBFloat16))
    return false;
  const Shape shape{rows.size(1), rows.size(2), y.size(2), transposed, tf32, type == at::kBFloat16};
  if (rows.size(0) == 0 || shape.rows == 0 || shape.in == 0 || shape.out == 0) return false;
  Products& products = Products::of_device(rows.get_device());
  const auto algorithm = products.algorithm(shape);
  if (!algorithm) return false;
  Call call(shape, rows.size(0), weight.stride(0), rows.stride(0), y.stride(0));
  cublasLtMatmulHeuristicResult_t checked;
  if (cublasLtMatmulAlgoCheck(products.handle(), &call.operation, &call.weight, &call.rows, &call.y,
                              &call.y, &*algorithm, &checked) != CUBLAS_STATUS_SUCCESS ||
      checked.workspaceSize > 0)
    return false;
  const float one = 1, zero = 0;
  float* const to = y.mutable_data_ptr<float>();
  require(cublasLtMatmul(products.handle(), &call.operation, &one, weight.const_data_ptr(),
                         &call.weight, rows.const_data_ptr(), &call.rows, &zero, to, &call.y, to,
                         &call.y, &*algorithm, nullptr, 0, stream_of(rows)),
          "product");
  return true;
}

// As for cuBLASLt above: y^T = b^T a^T, column by column.
bool multiply_in_tf32(const at::Tensor& a, const at::Tensor& b, const at::Tensor& y) {
  if (!y.is_cuda()) return false;
  const c10::DeviceGuard guard(y.device());
  const auto turned = [](const at::Tensor& x) {
    return x.stride(1) == 1 ? CUBLAS_OP_N : CUBLAS_OP_T;
  };
  const auto distance = [](const at::Tensor& x) {
    return static_cast<int>(x.stride(1) == 1 ? std::max(x.stride(0), x.size(1)) : x.stride(1));
  };
  const float one = 1, zero = 0;
  require(
      cublasGemmEx(at::cuda::getCurrentCUDABlasHandle(), turned(b), turned(a),
                   static_cast<int>(b.size(1)), static_cast<int>(a.size(0)),
                   static_cast<int>(a.size(1)), &one, b.const_data_ptr(), CUDA_R_32F, distance(b),
                   a.const_data_ptr(), CUDA_R_32F, distance(a), &zero, y.mutable_data_ptr(),
                   CUDA_R_32F, distance(y), CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT),
      "product in TF32");
  return true;
}

}  // namespace tpudist

#else

namespace tpudist {

bool multiply_members(const at::Tensor&, const at::Tensor&, bool, bool, const at::Tensor&) {
  return false;
}
bool multiply_in_tf32(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  return false;
}

}  // namespace tpudist

#endif
