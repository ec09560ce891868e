#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace tpudist {

// Allocates on 64-byte boundaries (a cache line, an AVX-512 register), so that the bits of BLAS
// calls do not depend on a buffer's address.
template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const AlignedAllocator&) const { return true; }
};

using AlignedFloats = std::vector<float, AlignedAllocator<float>>;

// The next multiple of 16 floats: rows of this length all begin on 64-byte boundaries.
constexpr std::int64_t pad16(std::int64_t n) {
  return (n + 15) / 16 * 16;
}

}  // namespace tpudist
