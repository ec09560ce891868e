#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tpudist {

// CUDA without its headers. A build without CUDA sees no devices, and the rest throws DistError.

// Unique ids of the CUDA devices that this process sees, by device index; empty without a GPU or a
// driver. Never throws for the lack of one.
std::vector<std::string> visible_devices();

// Versions of the CUDA runtime that is loaded and of the driver, by name; empty in a build without CUDA.
std::vector<std::pair<std::string, std::string>> cuda_versions();

// Copies between any two of host and device memory and waits for it.
void copy_device_bytes(void* to, const void* from, std::size_t bytes);

// Owns memory of the current device. The memory is not initialised.
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
