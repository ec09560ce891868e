#include "core/random.hpp"

#include <cmath>
#include <numbers>

#include "core/philox.hpp"

namespace tpudist {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, odd

// The finalizer of splitmix64 (Stafford's variant 13): a bijection of 64-bit words.
std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

constexpr std::uint32_t low(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}
constexpr std::uint32_t high(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  PhiloxKey own{key[0], key[1]};
  for (int round = 0; round < kPhiloxRounds; ++round, own.advance())
    philox_round(counter[0], counter[1], counter[2], counter[3], own);
  return counter;
}

std::uint64_t mix_key(std::span<const std::uint64_t> parts) {
  // Key and part are mixed differently: otherwise a part that equals the number of parts would
  // cancel the start, and (1) and () would give one key.
  std::uint64_t key = mix64(parts.size() + 0x2545F4914F6CDD1D);
  for (const std::uint64_t part : parts)
    key = mix64(key * 0xD1342543DE82EF95 + mix64(part + kGolden));
  return key;
}

CounterRng::CounterRng(std::uint64_t key, std::uint64_t stream) : key_(key), stream_(stream) {}

void CounterRng::refill() {
  words_ =
      philox4x32({low(block_), high(block_), low(stream_), high(stream_)}, {low(key_), high(key_)});
  ++block_;
  used_ = 0;
}

std::uint32_t CounterRng::next_u32() {
  if (used_ == 4) refill();
  return words_[static_cast<std::size_t>(used_++)];
}

std::uint64_t CounterRng::next_u64() {
  const std::uint64_t first = next_u32();
  return first | std::uint64_t{next_u32()} << 32;
}

double CounterRng::uniform() {
  return static_cast<double>(next_u64() >> 11) * 0x1p-53;
}

double CounterRng::uniform(double low, double high) {
  return low + (high - low) * uniform();
}

std::uint64_t CounterRng::below(std::uint64_t n) {
  // Lemire, "Fast random integer generation in an interval" (2019): takes the high word of a
  // product, and draws again if the low word falls into the incomplete last interval.
  __extension__ using Wide = unsigned __int128;
  for (;;) {
    const Wide product = static_cast<Wide>(next_u64()) * n;
    const auto remainder = static_cast<std::uint64_t>(product);
    if (remainder >= n || remainder >= (0 - n) % n)
      return static_cast<std::uint64_t>(product >> 64);
  }
}

double CounterRng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));  // the argument is in (0, 1]
  const double angle = 2 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

KeyedPermutation::KeyedPermutation(std::uint64_t n, std::uint64_t key)
    : n_(n), key_(mix64(key + kGolden)), half_bits_(1) {
  while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t index) const {
  // More rounds than the four of theory, because halves may have only one or two bits.
  constexpr std::uint64_t kRounds = 8;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t value = index;
  do {
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed =
          left ^ (mix64(key_ + kGolden * (round << 32 | right)) >> 32 & mask);
      left = right;
      right = mixed;
    }
    value = left << half_bits_ | right;
  } while (value >= n_);  // the walk stays on the cycle of `index`, so it ends
  return value;
}

}  // namespace tpudist
