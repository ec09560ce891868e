#include "results/records/predictions.hpp"

#include <span>

#include "core/hash.hpp"

namespace tpudist {

std::vector<double> PredictionRows::targets() const {
  std::vector<double> result(runtime.begin(), runtime.end());
  for (std::size_t r = 0; r < normalizer.size(); ++r)
    result[r] /= static_cast<double>(normalizer[r]);
  return result;
}

std::uint64_t data_hash(const PredictionEntry& graph, const PredictionRows& rows) {
  Hasher hasher;
  hasher.update(graph.name);
  hasher.update(graph.split);
  hasher.update(std::span<const std::int32_t>(rows.configs));
  hasher.update(std::span<const std::int64_t>(rows.runtime));
  hasher.update(std::span<const std::int64_t>(rows.normalizer));
  return hasher.digest();
}

}  // namespace tpudist
