#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace tpudist::test {

// Counts, as long as it lives, the bytes of LibTorch's tensors on the CPU, which stands for a device.
// What was allocated before is not counted. One object at a time.
class MemoryCounter {
 public:
  MemoryCounter() {
    counts() = {};
    c10::SetCPUAllocator(&allocator(), kPriority);
  }
  ~MemoryCounter() { c10::SetCPUAllocator(allocator().base, kPriority); }
  MemoryCounter(const MemoryCounter&) = delete;
  MemoryCounter& operator=(const MemoryCounter&) = delete;

  std::int64_t bytes() const { return read(&Counts::now); }
  std::int64_t peak() const { return read(&Counts::peak); }
  void forget_peak() {
    const std::lock_guard lock(mutex());
    counts().peak = counts().now;
  }

 private:
  static constexpr std::uint8_t kPriority = 100;  // that of keep_tensor_memory()
  struct Counts {
    std::int64_t now = 0, peak = 0;
  };
  struct Block {
    c10::DataPtr memory;
    std::int64_t bytes;
  };
  // Never destroyed, like the memory of tensors that outlive the counter.
  struct Allocator : c10::Allocator {
    c10::Allocator* const base = c10::GetCPUAllocator();

    c10::DataPtr allocate(std::size_t bytes) override {
      auto* const block = new Block{base->allocate(bytes), static_cast<std::int64_t>(bytes)};
      add(block->bytes);
      return {block->memory.get(), block, &release, c10::Device(c10::DeviceType::CPU)};
    }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
      std::memcpy(to, from, bytes);
    }
    static void release(void* context) {
      auto* const block = static_cast<Block*>(context);
      add(-block->bytes);
      delete block;
    }
  };

  static Allocator& allocator() {
    static auto* const made = new Allocator;
    return *made;
  }
  static std::mutex& mutex() {
    static std::mutex made;
    return made;
  }
  static Counts& counts() {
    static Counts made;
    return made;
  }
  static void add(std::int64_t bytes) {
    const std::lock_guard lock(mutex());
    counts().now += bytes;
    counts().peak = std::max(counts().peak, counts().now);
  }
  std::int64_t read(std::int64_t Counts::*which) const {
    const std::lock_guard lock(mutex());
    return counts().*which;
  }
};

}  // namespace tpudist::test
