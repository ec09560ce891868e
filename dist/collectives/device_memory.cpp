#include "dist/collectives/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/numbers.hpp"

#ifndef TPUDIST_NO_CUDA
#include <spdlog/spdlog.h>

#include "dist/collectives/cuda_check.hpp"
#endif

namespace tpudist {
namespace {

// 13010 is 13.1
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

std::string device_kind(const Device& device) {
  return fmt::format("{}, compute capability {}.{}", device.name, device.major, device.minor);
}

bool is_usable(const Device& device) {
  return std::pair(device.major, device.minor) >= std::pair(7, 5);
}

std::string device_problem(int runtime, int driver, std::string_view error) {
  if (driver == 0) return std::string(kNoDriver);
  if (driver / 1000 < runtime / 1000) {
    return fmt::format("the NVIDIA driver is for CUDA {}, and this program needs one for CUDA {}",
                       version_text(driver), version_text(runtime));
  }
  return std::string(error);
}

std::string why_no_device(const VisibleDevices& seen, int ranks) {
  if (!seen.problem.empty()) return seen.problem;
  const std::int64_t usable = std::ranges::count_if(seen.devices, is_usable);
  if (usable == 0 && !seen.devices.empty()) {
    return fmt::format("compute capability 7.5 is needed, but there is {}",
                       device_kind(seen.devices.front()));
  }
  return fmt::format("fewer GPUs than ranks: {}, one of which sees {} and has none left",
                     counted(ranks, "rank"), counted(usable, "GPU"));
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      page_locked_(other.page_locked_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(page_locked_, other.page_locked_);
  return *this;
}

#ifdef TPUDIST_NO_CUDA

namespace {
constexpr const char* kNoCuda =
    "this tpudist was built with a CPU-only LibTorch and cannot use a GPU";
[[noreturn]] void no_cuda() {
  throw DistError(kNoCuda);
}
}  // namespace

VisibleDevices visible_devices() {
  return {.devices = {}, .problem = kNoCuda};
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
DeviceBuffer DeviceBuffer::page_locked(std::size_t) {
  no_cuda();
}
DeviceBuffer::~DeviceBuffer() = default;

#else

VisibleDevices visible_devices() {
  VisibleDevices seen;
  int count = 0, runtime = 0, driver = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();  // forget it
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    seen.problem = device_problem(runtime, driver, cudaGetErrorString(error));
    return seen;
  }
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    Device& own = seen.devices.emplace_back(
        Device{"", properties.name, properties.major, properties.minor, properties.totalGlobalMem});
    for (const char byte : properties.uuid.bytes)
      own.id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return seen;
}

std::vector<std::pair<std::string, std::string>> cuda_versions() {
  const auto text = [](cudaError_t code, int version, const char* none) -> std::string {
    if (code != cudaSuccess) return cudaGetErrorString(code);
    if (version == 0) return none;
    return version_text(version);
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

DeviceBuffer DeviceBuffer::page_locked(std::size_t bytes) {
  DeviceBuffer buffer;
  check_cuda(cudaMallocHost(&buffer.data_, bytes),
             fmt::format("cudaMallocHost of {} bytes", bytes));
  buffer.bytes_ = bytes;
  buffer.page_locked_ = true;
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (!data_ || device_is_left()) return;
  const cudaError_t code = page_locked_ ? cudaFreeHost(data_) : cudaFree(data_);
  if (code == cudaSuccess) return;
  leave_device();
  spdlog::warn("freeing CUDA memory failed: {}", cudaGetErrorString(code));
}

#endif

}  // namespace tpudist
