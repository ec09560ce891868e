#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tpudist {

// CUDA without its headers. In a build without CUDA, visible_devices() finds none, and functions
// that need CUDA throw DistError.

struct Device {
  std::string id;            // unique
  std::string name;          // "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0;  // compute capability
  std::uint64_t memory = 0;  // bytes
};

// The name and the compute capability.
std::string device_kind(const Device& device);
// Whether the project's kernels run on the device.
bool is_usable(const Device& device);

// The CUDA devices that this process sees, by index, or why it sees none.
struct VisibleDevices {
  std::vector<Device> devices;
  std::string problem;
};
VisibleDevices visible_devices();

inline constexpr std::string_view kNoDriver = "no NVIDIA driver";

// Returns `problem` for a machine where CUDA finds no devices. Versions are CUDA's numbers (13010
// is 13.1); `driver` 0: no driver. `error`: CUDA's own words.
std::string device_problem(int runtime, int driver, std::string_view error);

// Why a rank that sees these devices gets none, on a node with `ranks` ranks.
std::string why_no_device(const VisibleDevices& seen, int ranks);

// Versions of the loaded CUDA runtime and the driver, by name; empty in a build without CUDA.
std::vector<std::pair<std::string, std::string>> cuda_versions();

// Copies bytes between host and device memory, or within one of them, and waits for the copy to
// end.
void copy_device_bytes(void* to, const void* from, std::size_t bytes);

// Owns uninitialised memory of the current device, or host memory for copies to and from the
// device. After an error the memory is left to the end of the process (device_is_left).
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  // Page-locked memory of the host.
  static DeviceBuffer page_locked(std::size_t bytes);
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
  bool page_locked_ = false;
};

}  // namespace tpudist
