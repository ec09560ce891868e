#include "ensemble/predictions.hpp"

namespace tpudist {

std::vector<double> GraphPredictions::targets() const {
  std::vector<double> result(runtime.begin(), runtime.end());
  for (std::size_t r = 0; r < normalizer.size(); ++r)
    result[r] /= static_cast<double>(normalizer[r]);
  return result;
}

}  // namespace tpudist
