#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tpudist {

// CUDA without its headers. In a build without CUDA there are no devices, and the other functions
// throw DistError.

// Unique ids of the CUDA devices that this process sees, by device index. Empty, without an error,
// when there is no GPU or no driver.
std::vector<std::string> visible_devices();

// The kind of a device, such as "NVIDIA H100 80GB HBM3"; "CPU" for -1.
std::string device_name(int device);

// Versions of the loaded CUDA runtime and of the driver, by name; empty in a build without CUDA.
std::vector<std::pair<std::string, std::string>> cuda_versions();

// Copies bytes between host and device memory, in either direction or within one, and waits until
// it is done.
void copy_device_bytes(void* to, const void* from, std::size_t bytes);

// Owns uninitialised memory of the current device.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  std::size_t bytes() const { return bytes_; }

  template <typename T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tpudist
