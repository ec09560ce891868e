#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

namespace tpudist {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four
// random words as a pure function of a key and a counter.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// Mixes integers into one 64-bit key (order matters), for keys such as (seed, member, step).
std::uint64_t mix_key(std::span<const std::uint64_t> parts);
inline std::uint64_t mix_key(std::initializer_list<std::uint64_t> parts) {
  return mix_key(std::span(parts.begin(), parts.size()));
}

// Random numbers as a pure function of (key, position): the same on every machine. Not thread-safe.
// Cheap to construct, so make one per key.
class CounterRng {
 public:
  explicit CounterRng(std::uint64_t key, std::uint64_t stream = 0);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  double uniform();  // [0, 1), 53 bits
  double uniform(double low, double high);
  std::uint64_t below(std::uint64_t n);  // [0, n), unbiased; n > 0
  double normal();                       // Box-Muller, mean 0, variance 1

  // Fisher-Yates.
  template <typename T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  void refill();
  std::uint64_t key_, stream_, block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  int used_ = 4;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

// A permutation of 0..n-1 as a pure function of a key, with O(1) memory (a Feistel network over the
// next power of four, cycle-walking). If n is 0, do not call operator(). Thread-safe.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t n, std::uint64_t key);
  std::uint64_t operator()(std::uint64_t index) const;  // index < n
  std::uint64_t size() const { return n_; }

 private:
  std::uint64_t n_, key_;
  int half_bits_;
};

}  // namespace tpudist
