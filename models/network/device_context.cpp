#include "models/network/device_context.hpp"

#include "core/error.hpp"

#ifdef TPUDIST_WITH_CUDA_KERNELS
#include <c10/cuda/CUDAException.h>

#include "models/device/device_backend.hpp"
#endif

namespace tpudist {

DeviceContext make_device_context(int device_index, [[maybe_unused]] Precision precision) {
  if (device_index < 0) return {};
#ifdef TPUDIST_WITH_CUDA_KERNELS
  hold_to_fp32(precision);
  if (precision != Precision::fp32) {
    int major = 0, minor = 0;
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_index));
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device_index));
    require_precision(precision, major, minor);
  }
  // A thread that waits for the device sleeps: its core plans the next steps.
  C10_CUDA_CHECK(
      cudaInitDevice(device_index, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
  return {at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device_index)), make_device_backend};
#else
  throw ConfigError(
      "a GPU needs the project's CUDA kernels, and this program was built without nvcc: set "
      "dist.device to cpu");
#endif
}

}  // namespace tpudist
