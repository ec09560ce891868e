#include "models/kernels/cpu_process.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "core/buffer_cache.hpp"

namespace tpudist {
namespace {

// Tensors of at least this many bytes come from the cache.
constexpr std::size_t kLeastBytes = std::size_t{1} << 15;
// Stands before every tensor's memory: its buffer, or null if the memory is the C library's.
constexpr std::size_t kHeaderBytes = 64;

class CachingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    std::unique_ptr<Buffer> buffer;
    char* begin = nullptr;
    if (bytes < kLeastBytes) {
      begin = static_cast<char*>(std::aligned_alloc(
          kHeaderBytes, kHeaderBytes + (bytes + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes));
      if (!begin) throw std::bad_alloc();
    } else {
      const std::size_t floats = (kHeaderBytes + bytes + sizeof(float) - 1) / sizeof(float);
      buffer = std::make_unique<Buffer>(buffers_.take(static_cast<std::int64_t>(floats)));
      begin = reinterpret_cast<char*>(buffer->data());
    }
    Buffer* const owner = buffer.release();
    std::memcpy(begin, &owner, sizeof(owner));
    void* const data = begin + kHeaderBytes;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

 private:
  static void release(void* data) {
    if (!data) return;
    char* const begin = static_cast<char*>(data) - kHeaderBytes;
    Buffer* owner = nullptr;
    std::memcpy(&owner, begin, sizeof(owner));
    if (owner) {
      delete owner;
    } else {
      std::free(begin);
    }
  }

  BufferCache buffers_;
};

}  // namespace

void keep_tensor_memory() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Never destroyed: tensors may be destroyed after everything else.
    static auto* const allocator = new CachingAllocator;
    c10::SetCPUAllocator(allocator, /*priority=*/100);
  });
}

}  // namespace tpudist
