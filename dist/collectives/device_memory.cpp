#include "dist/collectives/device_memory.hpp"

#include <utility>

#include "core/error.hpp"

#ifndef TPUDIST_NO_CUDA
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "dist/collectives/cuda_check.hpp"
#endif

namespace tpudist {

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

#ifdef TPUDIST_NO_CUDA

namespace {
[[noreturn]] void no_cuda() {
  throw DistError("this tpudist was built with a CPU-only LibTorch and cannot use a GPU");
}
}  // namespace

std::vector<std::string> visible_devices() {
  return {};
}
std::string device_name(int device) {
  if (device >= 0) no_cuda();
  return "CPU";
}
std::vector<std::pair<std::string, std::string>> cuda_versions() {
  return {};
}
void copy_device_bytes(void*, const void*, std::size_t) {
  no_cuda();
}
DeviceBuffer::DeviceBuffer(std::size_t) {
  no_cuda();
}
DeviceBuffer::~DeviceBuffer() = default;

#else

std::vector<std::string> visible_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {  // no driver, or one that is too old
    cudaGetLastError();
    return {};
  }
  std::vector<std::string> ids(count);
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    for (const char byte : properties.uuid.bytes) {
      ids[device] += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return ids;
}

std::string device_name(int device) {
  if (device < 0) return "CPU";
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

std::vector<std::pair<std::string, std::string>> cuda_versions() {
  // 13000 is 13.0
  const auto text = [](cudaError_t code, int version, const char* none) -> std::string {
    if (code != cudaSuccess) return cudaGetErrorString(code);
    if (version == 0) return none;
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  };
  int runtime = 0, driver = 0;
  const cudaError_t of_runtime = cudaRuntimeGetVersion(&runtime);
  const cudaError_t of_driver = cudaDriverGetVersion(&driver);
  return {{"CUDA runtime", text(of_runtime, runtime, "none")},
          {"CUDA driver", text(of_driver, driver, "no driver")}};
}

void copy_device_bytes(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  // A copy within device memory returns before it is done.
  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  check_cuda(cudaMalloc(&data_, bytes), fmt::format("cudaMalloc of {} bytes", bytes));
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ && cudaFree(data_) != cudaSuccess) spdlog::warn("cudaFree failed");
}

#endif

}  // namespace tpudist
