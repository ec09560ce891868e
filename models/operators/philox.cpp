#include "models/operators/philox.hpp"

#include "models/kernels/vectorised.hpp"

namespace tpudist {

// All rounds of a lane in one iteration, so that its words stay in registers: 3.5 times as fast with
// AVX2 as a loop over the lanes for each round.
TPUDIST_VECTORISED
void philox(const std::array<std::uint32_t, 4>& counter, PhiloxKey key, PhiloxWords& bits) {
  for (int lane = 0; lane < kPhiloxLanes; ++lane) {
    std::uint64_t w0 = counter[0], w1 = counter[1], w2 = counter[2],
                  w3 = counter[3] + static_cast<std::uint32_t>(lane);
    PhiloxKey own = key;
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; ++round, own.advance())
      philox_round(w0, w1, w2, w3, own);
    bits[0][lane] = static_cast<std::uint32_t>(w0);
    bits[1][lane] = static_cast<std::uint32_t>(w1);
    bits[2][lane] = static_cast<std::uint32_t>(w2);
    bits[3][lane] = static_cast<std::uint32_t>(w3);
  }
}

TPUDIST_VECTORISED
void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const float* x,
                float scale, int count, float* y) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t value = (words[i] >> shift) & 0xFFFFu;
    // A product, so that NaN stays NaN when it is dropped, as in PyTorch.
    y[i] = x[i] * (value < limit ? 0.0f : scale);
  }
}

void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const double* x,
                double scale, int count, double* y) {
  for (int i = 0; i < count; ++i)
    y[i] = x[i] * (((words[i] >> shift) & 0xFFFFu) < limit ? 0.0 : scale);
}

}  // namespace tpudist
