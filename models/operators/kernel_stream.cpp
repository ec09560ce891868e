#include "models/operators/kernel_stream.hpp"

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

}  // namespace tpudist
