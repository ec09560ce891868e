#include "results/records/initial_and_final_loss.hpp"

#include <algorithm>
#include <cmath>

#include "statistics/intervals/distributions.hpp"

namespace tpudist {

constexpr std::size_t kNumbers = 3;  // of a part

std::vector<double> no_losses(int members) {
  return std::vector<double>(static_cast<std::size_t>(members) * kLossParts * kNumbers);
}

void add_loss(std::vector<double>& parts, std::size_t member, std::int64_t step, std::int64_t steps,
              double loss) {
  const auto count = static_cast<std::int64_t>(kLossParts);
  const std::int64_t part = std::min(step * count / std::max<std::int64_t>(steps, 1), count - 1);
  double* const own = &parts[(member * kLossParts + static_cast<std::size_t>(part)) * kNumbers];
  const double before = loss - own[1];
  own[1] += before / ++own[0];
  own[2] += before * (loss - own[1]);
}

std::vector<InitialAndFinalLoss> loss_ends(const std::vector<double>& parts) {
  std::vector<InitialAndFinalLoss> ends(parts.size() / (kLossParts * kNumbers));
  for (std::size_t m = 0; m < ends.size(); ++m) {
    const double *const first = &parts[m * kLossParts * kNumbers], *last = first;
    double count = 0;
    for (const double* own = first; own < first + kLossParts * kNumbers; own += kNumbers) {
      count += own[0];
      if (own[0] >= 2) last = own;
    }
    if (count < kLeastLosses || first[0] < 2 || last == first) continue;
    const double degrees = first[0] - 1;
    ends[m] = {
        first[1], last[1],
        t_quantile(0.99, degrees) * std::sqrt(first[2] / degrees * (1 / first[0] + 1 / last[0]))};
  }
  return ends;
}

}  // namespace tpudist
