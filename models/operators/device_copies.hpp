#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

namespace at {
class Tensor;
}
namespace c10 {
struct Device;
}

namespace tpudist {

// The copies so far between a process and its device.
struct CopyCounts {
  std::int64_t uploads = 0, uploaded_bytes = 0;
  std::int64_t downloads = 0, downloaded_bytes = 0;
  std::int64_t waits = 0;        // of the host for the device; every download is one
  std::int64_t page_locked = 0;  // allocations of page-locked memory
};

// Bytes of the host, for byte `begin` and following of a copy on the device.
struct HostPart {
  const void* data = nullptr;
  std::size_t begin = 0, bytes = 0;
};

// All copies between the memory of this process and that of one device. They go through page-locked
// memory on the device's current stream, which must be the same for all threads. The staging
// buffers of uploads are few and of fixed size; one is reused only after an event says that its
// copy is done. In tests the CPU stands for the device. Thread-safe.
class DeviceCopies {
 public:
  explicit DeviceCopies(const c10::Device& device);
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  // Returns uint8 [bytes] on the device, filled from `parts`, which are sorted by `begin` and do
  // not overlap. Bytes between them are undefined. One copy, or several of at most 32 MiB. The
  // parts may change when it returns.
  at::Tensor upload(std::span<const HostPart> parts, std::size_t bytes);
  // The same into `to`, memory of the device.
  void upload(std::span<const HostPart> parts, std::size_t bytes, void* to);
  // Copies a contiguous tensor of the device to host memory of its size, and waits for it.
  void download(const at::Tensor& from, void* to);
  void download(const void* from, std::size_t bytes, void* to);

  // Uninitialised memory of the device. Its last owner may free it while queued work uses it.
  std::shared_ptr<void> allocate(std::size_t bytes);
  // Waits until the device has done all work queued so far.
  void wait();
  // Makes the device current in this thread, for callers that launch kernels themselves.
  void select() const;

  CopyCounts counts() const;
  // The most bytes that LibTorch has held on the device, including free blocks in its cache; 0 if
  // the CPU stands for the device.
  std::uint64_t peak_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tpudist
