#include "train/units/training_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/metis_segments.hpp"
#include "data/schema/collection.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/health/agreement.hpp"

namespace tpudist {
namespace {

OrderOptions order_options(const Experiment& experiment) {
  const BatchConfig& batch = experiment.batch;
  return {experiment.order_seed, batch.slates, batch.configs, batch.draw, batch.mix, batch.bias};
}

Dataset open_data(const DatasetOptions& options, ThreadPool& pool) {
  try {
    return Dataset::open(options, pool);
  } catch (const ConfigError& error) {
    if (!options.second) throw;
    throw ConfigError(fmt::format(
        "{}; members are to train on both splits (ensemble.fold_over: train+valid)", error.what()));
  }
}

// Ranks with different data must not reach the first exchange that depends on it.
Dataset open_same_data(const DatasetOptions& options, const DataConfig& config, ThreadPool& pool,
                       Communicator& world) {
  refuse_scored_graphs(options, config);
  Dataset data = open_data(options, pool);
  const AgreedValue selection{"training data", to_hex(data.selection_hash())};
  require_agreement(world, std::span(&selection, 1),
                    "give all ranks the same shards (data.shards)");
  require_same_segments(data, world);
  for (const std::string& pattern : options.include) {
    bool fits = options.second.has_value();  // its graphs have patterns of their own
    for (int g = 0; g < data.size() && !fits; ++g) fits = fits_graph({pattern}, data.graph(g).name);
    if (!fits) spdlog::info("data.include.train: '{}' fits no graph", pattern);
  }
  return data;
}

// Folds also depend on the fold file and on the manifest of the sibling collection.
FoldTable same_folds(const Experiment& experiment, const Dataset& data, Communicator& world) {
  FoldTable folds;
  run_on_all_ranks(world, [&] { folds = training_folds(experiment.ensemble, data.options()); });
  const std::optional<std::uint64_t> hash = training_folds_hash(folds, data);
  const AgreedValue value{"folds", hash ? to_hex(*hash) : "none"};
  require_agreement(world, std::span(&value, 1),
                    "give all ranks the same shards and the same ensemble.fold_file");
  return folds;
}

// Dropout with a draw for every (node, configuration) needs dense plans. So do nodes without a
// gradient: they cannot share rows with equal nodes that have one. Scoring has neither.
PlanMode training_plan(const Experiment& experiment, const Dataset& data) {
  bool dense = experiment.network.draws_per_element();
  for (int g = 0; experiment.data.reduction.gradient_only && g < data.size(); ++g)
    dense = dense || experiment.data.reduction.draws(data.graph(g).nodes);
  return dense ? PlanMode::dense : experiment.plan;
}

UnitBuilder training_units(const Experiment& experiment, const Dataset& data,
                           const Network& network, ThreadPool& pool) {
  UnitBuilder units(data, network, training_plan(experiment, data), experiment.batch.config_chunk,
                    experiment.loss->is_translation_invariant && !experiment.data.cuts_segments()
                        ? UnitUse::differences
                        : UnitUse::gradients);
  units.share_graphs(experiment.batch.edge_dropout > 0 || experiment.data.cuts_segments(), pool);
  return units;
}

// Half of the device's memory: weights, gradients of all leaves and plans take the rest.
double pass_bytes(int device) {
  const std::vector<Device> devices =
      device < 0 ? std::vector<Device>() : visible_devices().devices;
  return static_cast<std::size_t>(device) < devices.size()
             ? static_cast<double>(devices[static_cast<std::size_t>(device)].memory) / 2
             : std::numeric_limits<double>::infinity();
}

}  // namespace

TrainingSetup::TrainingSetup(const Experiment& experiment, const DatasetOptions& options,
                             ThreadPool& pool, int device, int ranks, Communicator& world)
    : experiment(experiment),
      pool(pool),
      steps_at_once(device < 0 ? 1 : std::min(experiment.train.prefetch, pool.threads())),
      most_pass_bytes(pass_bytes(device)),
      data(open_same_data(options, experiment.data, pool, world)),
      folds(same_folds(experiment, data, world)),
      network(experiment.network, experiment.data.collection.schema, device, pool,
              experiment.train.recompute),
      units(training_units(experiment, data, network, pool)),
      order(order_of(order_options(experiment), data)),
      planner(experiment, order,
              estimate_slate_costs(experiment, data, units, order, pool, world,
                                   // One rank needs them for the estimate of a GPU's memory.
                                   ranks > 1    ? kCostSamples
                                   : device < 0 ? 0
                                                : kCostSamples / 4),
              graph_folds(folds, data), ranks,
              // Limited calls and chunks stay apart.
              units.joins_units() && experiment.batch.member_chunk == 0 &&
                  experiment.batch.config_chunk == 0) {}

void require_same_segments(const Dataset& data, Communicator& world) {
  const std::optional<std::uint64_t> hash = segment_hash(data);
  const AgreedValue segments{"segments of graphs", hash ? to_hex(*hash) : "none"};
  require_agreement(world, std::span(&segments, 1),
                    "give all ranks the same METIS, or data.segments.by=consecutive");
}

StepBuilder TrainingSetup::steps_of(int rank, const BatchPlanner& assigned) const {
  return StepBuilder(experiment, assigned, order, units, pool, rank, most_pass_bytes);
}

std::vector<std::pair<std::int64_t, std::int64_t>> cut_graphs(const Dataset& data) {
  std::vector<std::pair<std::int64_t, std::int64_t>> graphs;
  if (data.options().reduction.segments == SegmentCut::none) return graphs;
  for (int g = 0; g < data.size(); ++g)
    graphs.emplace_back(data.rows(g), std::ssize(configurable_segments(data.graph(g))));
  return graphs;
}

int searched_steps(const Experiment& experiment) {
  constexpr std::int64_t kMost = 20;
  return static_cast<int>(std::clamp<std::int64_t>(experiment.train.steps, 1, kMost));
}

std::vector<SlateRows> computed_together(const Experiment& experiment,
                                         std::vector<SlateRows> slates) {
  const auto chunk = static_cast<std::size_t>(experiment.batch.config_chunk);
  if (chunk > 0 && slates.size() == 1 && slates[0].rows.size() > chunk) {
    slates[0].rows.resize(chunk);
  }
  return slates;
}

LargestStep largest_step(const TrainingSetup& setup, const BatchPlanner& planner) {
  LargestStep largest;
  double most = -1;
  for (int step = 0; step < searched_steps(setup.experiment); ++step) {
    const BatchPlan plan = planner.plan(step);
    const auto leaves =
        std::ranges::count_if(plan.owners.owner, [](int rank) { return rank >= 0; });
    largest.leaves = std::max<std::int64_t>(largest.leaves, leaves);
    const auto cost = std::ranges::max_element(plan.rank_cost);
    if (*cost <= most) continue;
    most = *cost;
    largest.step = step;
    largest.rank = static_cast<int>(cost - plan.rank_cost.begin());
  }
  return largest;
}

std::vector<SlateRows> largest_unit(const TrainingSetup& setup) {
  const int first = drawn_by(setup.experiment, 0);
  const bool cut = setup.experiment.data.cuts_segments();
  std::vector<SlateCost> costs;  // [graphs]
  for (int g = 0; g < setup.data.size(); ++g) {
    const bool learns = setup.planner.learners(g) > 0;
    costs.push_back(learns ? setup.planner.cost(g) : SlateCost{0, 0});
    if (!cut || !learns) continue;
    const auto size = static_cast<double>(
        largest_segment(setup.data.graph(g)) *
        std::min<std::int64_t>(setup.experiment.batch.configs, setup.data.rows(g)));
    costs.back() = {size, size};
  }
  const auto cost = [&](const std::vector<SlateRows>& slates) {
    double sum = 0;
    for (std::size_t i = 0; i < slates.size(); ++i) {
      const int graph = slates[i].graph;
      const bool shares = i > 0 && slates[i - 1].graph == graph;
      sum += shares ? costs[graph].further : costs[graph].first;
    }
    return sum;
  };
  std::vector<SlateRows> largest;
  const int steps = searched_steps(setup.experiment);
  if (setup.experiment.train.steps > steps) {
    const auto most = std::ranges::max_element(costs, {}, &SlateCost::first);
    const auto graph = static_cast<int>(most - costs.begin());
    largest.push_back({graph, setup.order.rows({.graph = graph}, first)});
  }
  for (int step = 0; step < steps; ++step) {
    const BatchPlan plan = setup.planner.plan(step);
    for (int unit = 0; unit < plan.units(); ++unit) {
      std::vector<SlateRows> slates = rows_of_unit(plan, setup.order, unit, first);
      if (largest.empty() || cost(slates) > cost(largest)) largest = std::move(slates);
    }
  }
  return largest;
}

GraphDraw largest_draw(const Experiment& experiment) {
  GraphDraw draw = graph_draw(experiment, 0);
  draw.segment = 0;
  return draw;
}

}  // namespace tpudist
