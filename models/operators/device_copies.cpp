#include "models/operators/device_copies.hpp"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/failed_device.hpp"
#include "core/mutex.hpp"
#include "core/pauses.hpp"

namespace tpudist {
namespace {

// Staging buffers of two sizes: scores and their gradients need not wait behind units.
constexpr std::size_t kSmall = std::size_t{64} << 10, kLarge = std::size_t{32} << 20;
constexpr std::size_t kBuffers = 3;  // of each size

// Threads that prepare units need the processor more than a thread that waits for the device, from
// `begin` on. Throws Error when the device has failed: what it waits for may never come.
void pause(std::chrono::steady_clock::time_point begin) {
  if (device_has_failed)
    throw Error(ErrorKind::failed,
                "an earlier call of CUDA or NCCL has failed: the GPU is given up");
  std::this_thread::sleep_for(
      pause_after(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(20)));
}

// A point of the device's current stream; empty if the CPU stands for the device.
class StreamPoint {
 public:
  explicit StreamPoint(c10::Device device) {
    if (device.is_cpu()) return;
    event_.emplace(device.type());
    event_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  }
  bool is_reached() const { return !event_ || event_->query(); }
  void wait() const {
    for (const auto begin = std::chrono::steady_clock::now(); !is_reached();) pause(begin);
  }

 private:
  std::optional<c10::Event> event_;
};

}  // namespace

struct DeviceCopies::Impl {
  struct Staging {
    at::Tensor memory;
    std::optional<StreamPoint> copied;  // when it may be written again; its user's while in use
    bool in_use TPUDIST_GUARDED_BY(&Impl::mutex) = false;
  };
  // Ends the use of a buffer, also on an error: otherwise others would wait for it for ever.
  struct GiveBack {
    Impl* impl;
    void operator()(Staging* staging) const {
      const MutexLock lock(impl->mutex);
      staging->in_use = false;
    }
  };
  using OwnStaging = std::unique_ptr<Staging, GiveBack>;

  explicit Impl(c10::Device device) : device(device) {}

  at::Tensor page_locked(std::int64_t bytes) TPUDIST_REQUIRES(mutex) {
    ++counts.page_locked;
    return at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(device.is_cuda()));
  }
  // uint8 [bytes] on the device.
  at::Tensor memory(std::size_t bytes) const {
    return at::empty({static_cast<std::int64_t>(bytes)},
                     at::TensorOptions(at::kByte).device(device));
  }
  at::Tensor view_of(void* data, std::size_t bytes) const {
    return at::from_blob(data, {static_cast<std::int64_t>(bytes)},
                         at::TensorOptions(at::kByte).device(device));
  }

  // `to` and `from` have one shape, and one of them is on the device.
  void copy(const at::Tensor& from, const at::Tensor& to) {
    if (device.is_cpu()) {
      std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
    } else {
      to.copy_(from, /*non_blocking=*/true);
    }
  }

  OwnStaging take(std::size_t bytes) {
    MutexLock lock(mutex);
    std::vector<Staging>& buffers = bytes <= kSmall ? small : large;
    if (buffers.empty()) {
      const auto size = static_cast<std::int64_t>(bytes <= kSmall ? kSmall : kLarge);
      for (std::size_t i = 0; i < kBuffers; ++i)
        buffers.push_back({page_locked(size), std::nullopt});
    }
    for (const auto begin = std::chrono::steady_clock::now();;) {
      for (Staging& staging : buffers) {
        if (staging.in_use || (staging.copied && !staging.copied->is_reached())) continue;
        staging.in_use = true;
        return OwnStaging(&staging, {this});
      }
      lock.unlock();
      pause(begin);
      lock.lock();
    }
  }

  const c10::Device device;
  Mutex mutex;
  std::vector<Staging> small TPUDIST_GUARDED_BY(mutex), large TPUDIST_GUARDED_BY(mutex);
  CopyCounts counts TPUDIST_GUARDED_BY(mutex);
};

DeviceCopies::DeviceCopies(const c10::Device& device) : impl_(std::make_unique<Impl>(device)) {}
DeviceCopies::~DeviceCopies() = default;

at::Tensor DeviceCopies::upload(std::span<const HostPart> parts, std::size_t bytes) {
  const at::Tensor made = impl_->memory(bytes);
  upload(parts, bytes, made.mutable_data_ptr());
  return made;
}

void DeviceCopies::upload(std::span<const HostPart> parts, std::size_t bytes, void* to) {
  if (bytes == 0) return;  // LibTorch refuses a null pointer as GPU memory
  const at::Tensor made = impl_->view_of(to, bytes);
  for (std::size_t begin = 0; begin < bytes; begin += kLarge) {
    const std::size_t end = std::min(bytes, begin + kLarge);
    const Impl::OwnStaging staging = impl_->take(end - begin);
    auto* const memory = staging->memory.mutable_data_ptr<std::uint8_t>();
    for (; !parts.empty(); parts = parts.subspan(1)) {
      const HostPart& part = parts.front();
      const std::size_t first = std::max(part.begin, begin),
                        last = std::min(part.begin + part.bytes, end);
      if (first < last)
        std::memcpy(memory + (first - begin),
                    static_cast<const std::uint8_t*>(part.data) + (first - part.begin),
                    last - first);
      if (part.begin + part.bytes > end) break;
    }
    const auto size = static_cast<std::int64_t>(end - begin);
    impl_->copy(staging->memory.narrow(0, 0, size),
                made.narrow(0, static_cast<std::int64_t>(begin), size));
    staging->copied.emplace(impl_->device);
    const MutexLock lock(impl_->mutex);
    ++impl_->counts.uploads;
    impl_->counts.uploaded_bytes += size;
  }
}

void DeviceCopies::download(const at::Tensor& from, void* to) {
  const at::Tensor flat = from.view({-1});
  const auto most = static_cast<std::int64_t>(kLarge / from.element_size());
  for (std::int64_t begin = 0; begin < flat.numel(); begin += most) {
    const at::Tensor part = flat.narrow(0, begin, std::min(most, flat.numel() - begin));
    const Impl::OwnStaging staging = impl_->take(part.nbytes());
    const auto bytes = static_cast<std::int64_t>(part.nbytes());
    impl_->copy(part, staging->memory.narrow(0, 0, bytes).view(part.scalar_type()));
    StreamPoint(impl_->device).wait();
    std::memcpy(
        static_cast<std::uint8_t*>(to) + static_cast<std::size_t>(begin) * from.element_size(),
        staging->memory.const_data_ptr<std::uint8_t>(), part.nbytes());
    const MutexLock lock(impl_->mutex);
    ++impl_->counts.downloads;
    ++impl_->counts.waits;
    impl_->counts.downloaded_bytes += bytes;
  }
}

void DeviceCopies::download(const void* from, std::size_t bytes, void* to) {
  if (bytes == 0) return;
  download(impl_->view_of(const_cast<void*>(from), bytes), to);
}

std::shared_ptr<void> DeviceCopies::allocate(std::size_t bytes) {
  const at::Tensor memory = impl_->memory(bytes);
  return {memory.mutable_data_ptr(), [memory](void*) {}};
}

void DeviceCopies::wait() {
  select();
  StreamPoint(impl_->device).wait();
  const MutexLock lock(impl_->mutex);
  ++impl_->counts.waits;
}

void DeviceCopies::select() const {
  if (!impl_->device.is_cpu())
    c10::impl::VirtualGuardImpl(impl_->device.type()).setDevice(impl_->device);
}

CopyCounts DeviceCopies::counts() const {
  const MutexLock lock(impl_->mutex);
  return impl_->counts;
}

std::uint64_t DeviceCopies::peak_bytes() const {
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(impl_->device.type()));
  if (!allocator) return 0;
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<std::uint64_t>(
      allocator->getDeviceStats(impl_->device.index()).reserved_bytes[kAll].peak);
}

}  // namespace tpudist
