#include "results/scores/score_caveats.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

NoiseCeiling ceiling_of(bool is_tile, std::span<const double> targets,
                        const std::vector<std::int32_t>& group) {
  NoiseCeiling none;
  if (is_tile) {
    none.reason = kNoTileCeiling;
  } else if (std::ranges::all_of(targets, [](double time) { return time == 0; })) {
    none.reason = "there are no run times";
  } else if (group.empty()) {
    none.reason = "the predictions do not say which configurations are equal; write them anew";
  } else {
    return noise_ceiling(targets, group);
  }
  return none;
}

}  // namespace

ScoreCaveats score_limits(std::string_view collection, std::span<const double> ranking,
                          const PredictionRows& predictions) {
  const bool is_tile = collection.starts_with("tile:");
  const std::vector<double> targets = predictions.targets();
  ScoreCaveats limits;
  limits.ceiling = ceiling_of(is_tile, targets, predictions.group);
  if (ranking.empty()) return limits;
  limits.tied_share = tied_pair_share(ranking, predictions.group);
  if (!is_tile)
    limits.sampling_deviation = tau_sampling_deviation(ranking, targets, predictions.group);
  return limits;
}

nlohmann::json limits_json(const ScoreCaveats& limits) {
  const NoiseCeiling& ceiling = limits.ceiling;
  nlohmann::json json = {{"ceiling", nullptr},
                         {"ceiling_interval", nullptr},
                         {"ceiling_reason", nullptr},
                         {"tied_share", finite_or_null(limits.tied_share)},
                         {"sampling_deviation", finite_or_null(limits.sampling_deviation)}};
  if (ceiling.value) {
    json["ceiling"] = *ceiling.value;
    json["ceiling_interval"] = {ceiling.low, ceiling.high};
    json["ceiling_normal_assumed"] = ceiling.normal_assumed;
  } else {
    json["ceiling_reason"] = ceiling.reason;
  }
  return json;
}

}  // namespace tpudist
