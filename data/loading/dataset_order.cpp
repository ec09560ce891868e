#include "data/loading/dataset_order.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace tpudist {

SlateOrder order_of(const OrderOptions& options, const Dataset& data) {
  std::vector<std::vector<std::int32_t>> fastest_first;
  for (int g = 0; options.mix != SlateMix::uniform && g < data.size(); ++g) {
    std::vector<double> targets;
    for (std::int64_t row = 0; row < data.rows(g); ++row) targets.push_back(data.target(g, row));
    std::vector<std::int32_t>& rows = fastest_first.emplace_back(targets.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::ranges::stable_sort(rows, {}, [&](std::int32_t row) { return targets[row]; });
  }
  return SlateOrder(options, data.rows_per_graph(), data.selection_hash(),
                    std::move(fastest_first));
}

}  // namespace tpudist
