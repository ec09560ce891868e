#include "train/loop/layer_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/numbers.hpp"
#include "models/network/layer_table.hpp"

namespace tpudist {
namespace {

std::string percent_of_rows(const PlanComparison& plans, int depth) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(plans.refined.rows(depth)) /
                                     static_cast<double>(plans.dense_rows));
}

// The effect of refinement on the rows around a layer; nothing for a layer that maps rows by
// itself.
std::string forecast(const LayerRow& layer, bool is_encoder, const PlanComparison& plans) {
  if (plans.dense_rows == 0) return "";
  if (is_encoder) return "rows " + percent_of_rows(plans, 0);
  if (layer.steps == 0) return "";
  return "rows " + percent_of_rows(plans, layer.first_step) + " -> " +
         percent_of_rows(plans, layer.first_step + layer.steps);
}

std::string state_of(const LayerRow& layer, bool refined, const PlanComparison& plans) {
  if (layer.channels == 0) return "scores";
  const std::int64_t rows =
      refined ? plans.refined.rows(layer.first_step + layer.steps) : plans.dense_rows;
  return format_count(rows) + " x " + format_count(layer.channels);
}

}  // namespace

std::vector<std::string> layer_lines(const TrainingSetup& setup, const PlanComparison& plans) {
  const Network& network = setup.network;
  const std::vector<LayerRow> layers =
      layer_table(network.config(), network.config_features(), network.parameters());
  const bool refined = setup.units.takes_refined(plans);
  std::size_t width = 0;
  for (const LayerRow& layer : layers)
    width = std::max(width, layer.name.size() + 2 * static_cast<std::size_t>(layer.depth));
  std::vector<std::string> lines;
  for (const LayerRow& layer : layers) {
    const std::string name =
        std::string(2 * static_cast<std::size_t>(layer.depth), ' ') + layer.name;
    std::string line =
        fmt::format("{:<{}}  {:>9}  {:>16}  {}", name, width, format_count(layer.parameters),
                    state_of(layer, refined, plans), forecast(layer, lines.empty(), plans));
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tpudist
