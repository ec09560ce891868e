#include "models/network/network_config.hpp"

#include <span>

#include "core/error.hpp"
#include "data/schema/lanes.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

// The bits of the largest dimensions of every input row.
std::vector<std::int32_t> largest_of(const UnitInput& unit) {
  std::vector<std::int32_t> largest(static_cast<std::size_t>(unit.plan->nodes));
  const std::vector<std::int64_t> begins = unit.graph_begins();
  for (std::size_t g = 0; g < begins.size(); ++g) {
    const std::span<const float> raw = unit.graphs[g]->raw_features();
    const std::size_t width = raw.size() / static_cast<std::size_t>(unit.graphs[g]->nodes());
    auto row = largest.begin() + begins[g];
    for (std::size_t at = width; at <= raw.size(); at += width)
      *row++ = static_cast<std::int32_t>(raw[at - 1]);
  }
  return largest;
}

// The dimension along the lanes in an order, -1 at its unused places; -1: it has none.
int lane_dimension(std::span<const float> order, bool minor_to_major) {
  if (minor_to_major) return static_cast<int>(order.front());
  int last = -1;
  for (const float dimension : order) {
    if (dimension >= 0) last = static_cast<int>(dimension);
  }
  return last;
}

}  // namespace

std::vector<double> violation_ratios(const ViolationRatio& ratio, const UnitInput& unit,
                                     const FeatureSchema& schema) {
  const Plan& plan = *unit.plan;
  if (plan.layers.empty() || plan.layers.back()->state.empty() || !plan.readout.left_out.empty())
    throw Error(ErrorKind::failed, "a violation ratio needs whole plans that end with states");
  const std::vector<std::int32_t> largest = largest_of(unit);
  const auto width = static_cast<std::size_t>(schema.layout_columns.count);
  const std::vector<std::int32_t>& states = plan.layers.back()->state;
  std::vector<double> counts(states.size()), violations(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] < 0) continue;
    std::int64_t row = static_cast<std::int64_t>(i);
    for (std::size_t layer = plan.layers.size(); layer-- > 0;) row = plan.layers[layer]->self(row);
    const std::int32_t bits = largest[static_cast<std::size_t>(plan.node[row])];
    if (bits == 0) continue;
    const auto state = static_cast<std::size_t>(states[i] * schema.config_features);
    const int lanes =
        lane_dimension(std::span(unit.states)
                           .subspan(state + static_cast<std::size_t>(ratio.tensor) * width, width),
                       ratio.minor_to_major);
    if (lanes < 0 && ratio.unset == ViolationRatio::Unset::skip) continue;
    counts[i] = 1;
    violations[i] =
        lanes < 0 ? ratio.unset == ViolationRatio::Unset::violates : violates(bits, lanes);
  }
  std::vector<double> ratios = config_sums(plan.readout, violations);
  const std::vector<double> all = config_sums(plan.readout, counts);
  for (std::size_t k = 0; k < ratios.size(); ++k) ratios[k] = all[k] > 0 ? ratios[k] / all[k] : 0;
  return ratios;
}

}  // namespace tpudist
