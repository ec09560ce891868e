#include "results/scores/score_caveats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json.hpp"
#include "core/means.hpp"
#include "core/text_table.hpp"
#include "statistics/noise/rank_sampling.hpp"

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

std::string limits_text(std::span<const LimitedScore> graphs, std::string_view metric) {
  if (std::ranges::all_of(graphs, [](const auto& graph) { return std::isnan(graph.score); }))
    return {};
  TextTable table({"graph", right(metric, 11), right("ceiling"), right("95 % interval", 15),
                   right("ties", 8), right("sampling SD")});
  using Note = std::pair<std::string_view, std::string>;
  std::map<Note, std::vector<std::string>> noted;  // graphs by what is said of them
  for (const LimitedScore& graph : graphs) {
    const NoiseCeiling& ceiling = graph.limits.ceiling;
    table.rows.push_back(
        {graph.graph, graph.score, ceiling.value,
         ceiling.value ? fmt::format("{:.3f} to {:.3f}", ceiling.low, ceiling.high) : "-",
         TableCell(100 * graph.limits.tied_share, "{:.2f} %"), graph.limits.sampling_deviation});
    if (!ceiling.value) noted[{"no ceiling", ceiling.reason}].push_back(graph.graph);
    if (ceiling.normal_assumed)
      noted[{"ceiling", "noise assumed normal, too few configurations have six measurements"}]
          .push_back(graph.graph);
  }
  std::string text = table.to_text();
  for (const auto& [note, names] : noted) {
    const std::string others =
        names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : std::string();
    text += fmt::format("{} of {}{}: {}\n", note.first, names.front(), others, note.second);
  }
  return text + "\n";
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
