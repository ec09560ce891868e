#include "models/operators/philox.hpp"

#include "models/kernels/vectorised.hpp"

namespace tpudist {

TPUDIST_VECTORISED
void philox(const std::array<std::uint32_t, 4>& counter, PhiloxKey key, PhiloxWords& bits) {
  std::uint64_t word[4][kPhiloxLanes];
  for (int lane = 0; lane < kPhiloxLanes; ++lane) {
    for (int w = 0; w < 3; ++w) word[w][lane] = counter[w];
    word[3][lane] = counter[3] + static_cast<std::uint32_t>(lane);
  }
  for (int round = 0; round < kPhiloxRounds; ++round, key.advance()) {
    for (int lane = 0; lane < kPhiloxLanes; ++lane)
      philox_round(word[0][lane], word[1][lane], word[2][lane], word[3][lane], key);
  }
  for (int w = 0; w < 4; ++w) {
    for (int lane = 0; lane < kPhiloxLanes; ++lane)
      bits[w][lane] = static_cast<std::uint32_t>(word[w][lane]);
  }
}

TPUDIST_VECTORISED
void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const float* x,
                float scale, int count, float* y) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t value = (words[i] >> shift) & 0xFFFFu;
    // A product, so that what is no number is none when it is dropped, as in PyTorch.
    y[i] = x[i] * (value < limit ? 0.0f : scale);
  }
}

void keep_lanes(const std::uint32_t* words, int shift, std::uint32_t limit, const double* x,
                double scale, int count, double* y) {
  for (int i = 0; i < count; ++i)
    y[i] = x[i] * (((words[i] >> shift) & 0xFFFFu) < limit ? 0.0 : scale);
}

}  // namespace tpudist
