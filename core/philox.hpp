#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define TPUDIST_ON_DEVICE __host__ __device__
#else
#define TPUDIST_ON_DEVICE
#endif

namespace tpudist {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), on hosts
// and devices. It turns a counter of four words and a key of two words into four random words, in
// ten rounds.
struct PhiloxKey {
  std::uint32_t low, high;

  TPUDIST_ON_DEVICE void advance() {
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
};

inline constexpr int kPhiloxRounds = 10;

// One round. The caller advances `key` after it. Word has 32 bits, or 64 bits with a zero upper
// half: compilers vectorise 64-bit words over several counters.
template <typename Word>
TPUDIST_ON_DEVICE inline void philox_round(Word& w0, Word& w1, Word& w2, Word& w3, PhiloxKey key) {
  constexpr std::uint64_t kLow = 0xFFFFFFFFull;
  const std::uint64_t a = 0xD2511F53ull * w0, b = 0xCD9E8D57ull * w2;
  w0 = static_cast<Word>((b >> 32) ^ w1 ^ key.low);
  w1 = static_cast<Word>(b & kLow);
  w2 = static_cast<Word>((a >> 32) ^ w3 ^ key.high);
  w3 = static_cast<Word>(a & kLow);
}

}  // namespace tpudist
