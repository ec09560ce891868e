#include "models/network/network_config.hpp"

#include <algorithm>

#include "models/inputs/encoder.hpp"
#include "models/layers/layer.hpp"
#include "models/plans/plan_cost.hpp"

namespace tpudist {
namespace {

std::int64_t trained(const std::vector<ParameterEntry>& entries) {
  std::int64_t count = 0;
  for (const ParameterEntry& entry : entries) {
    if (entry.group != ParameterGroup::statistics) count += entry.size();
  }
  return count;
}

void add_layer(const Layer& layer, int depth, int step, std::vector<LayerRow>& rows) {
  rows.push_back({layer.description(), depth, trained(layer.parameters()), layer.channels(), step,
                  static_cast<int>(layer.steps().size())});
  for (const auto& inner : layer.inner()) {
    add_layer(*inner, depth + 1, step, rows);
    step += static_cast<int>(inner->steps().size());
  }
}

// Numbers that the pools hold besides rows during the backward pass: of all configurations what they
// return, joined, and its gradients; the gradients of rows; and for one pool at a time its sums of
// cells and slates, of a maximum also the largest rows and how many reach them. Sums are in double.
double readout_floats(const NetworkConfig& config, const Plan& plan) {
  constexpr double kDouble = 2;
  const Readout& readout = plan.readout;
  const auto pools = static_cast<double>(config.pools.size()),
             channels = static_cast<double>(config.blocks.back()->channels()),
             rows = static_cast<double>(plan.rows(plan.layers.size())),
             configs = static_cast<double>(plan.configs),
             parts = static_cast<double>(readout.cells.forward.rows() * readout.cells.replicas +
                                         readout.common.forward.rows());
  const bool has_max = std::ranges::any_of(
      config.pools, [](const Pool& pool) { return pool.aggregation == Aggregation::max; });
  return channels * (pools * rows + kDouble * (3 * pools * configs + (has_max ? 3 : 1) * parts));
}

std::string head_name(const NetworkConfig& config) {
  std::string name;
  for (const Pool& pool : config.pools)
    name += (name.empty() ? "" : "+") + std::string(pool.name());
  if (config.head.joins_config) name += ", configuration";
  if (config.head.violations) name += ", violation ratio";
  for (const std::int64_t width : config.head.widths) name += ", linear " + std::to_string(width);
  return "readout " + name + ", linear 1" + (config.head.bias ? "" : ", no bias");
}

}  // namespace

std::vector<LayerRow> layer_table(const NetworkConfig& config, const FeatureSchema& schema,
                                  const ParameterTable& table) {
  const Encoder encoder(config.encoder, schema);
  std::vector<LayerRow> rows;
  rows.push_back({"encoder", 0, trained(encoder.parameters()), encoder.channels(), 0, 0});
  int step = 0;
  std::int64_t parameters = rows.front().parameters;
  for (const auto& block : config.blocks) {
    add_layer(*block, 0, step, rows);
    step += static_cast<int>(block->steps().size());
    parameters += trained(block->parameters());
  }
  // The rest belongs to the head, including an MLP over the configurations.
  rows.push_back({head_name(config), 0, table.parameters() - parameters, 0, step,
                  config.reads_config_nodes() ? 1 : 0});
  return rows;
}

double training_floats(const NetworkConfig& config, const FeatureSchema& schema, const Plan& plan,
                       bool recompute) {
  const bool fused = !config.is_composed();
  const double readout = fused ? 0 : readout_floats(config, plan);
  const auto held = [fused](const PlanCost& cost, double behind) {
    return fused ? 2 * cost.states : std::max(cost.most_held, cost.kept + behind);
  };
  if (!recompute) return held(plan_cost(plan, config.work(schema)), readout);
  const auto between = [&](std::size_t depth, std::int64_t channels) {
    return static_cast<double>(plan.rows(depth) * channels);
  };
  std::size_t depth = 0;
  double kept = between(0, Encoder(config.encoder, schema).channels()), most = 0;
  const auto& blocks = config.blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    NetworkWork own;
    blocks[i]->add_work(own);
    const double inside = held(plan_cost(plan, own, depth), 0);
    depth += own.steps.size() - 1;
    if (!fused || i % 2 == 1 || i + 1 == blocks.size())
      kept += between(depth, blocks[i]->channels());
    most = std::max(most, kept + inside);
  }
  return std::max(most, kept + readout);
}

}  // namespace tpudist
