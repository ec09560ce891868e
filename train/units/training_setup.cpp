#include "train/units/training_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
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

constexpr int kSteps = 20;  // steps that are searched for the largest step and unit

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
              ranks > 1 ? estimate_slate_costs(experiment, data, units, order, pool, world)
                        : std::vector<SlateCost>(data.size()),
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

std::vector<SlateRows> computed_together(const Experiment& experiment,
                                         std::vector<SlateRows> slates) {
  const auto chunk = static_cast<std::size_t>(experiment.batch.config_chunk);
  if (chunk > 0 && slates.size() == 1 && slates[0].rows.size() > chunk) {
    slates[0].rows.resize(chunk);
  }
  return slates;
}

std::int64_t largest_step(const TrainingSetup& setup) {
  const int first = drawn_by(setup.experiment, 0);
  const GraphDraw draw = largest_draw(setup.experiment);
  std::vector<std::pair<int, SlateRows>> learned;  // by step
  std::vector<SlateRows> samples;                  // one of each graph
  std::map<int, SlateCost> cost_of;                // of each graph
  for (int step = 0; step < kSteps; ++step) {
    const BatchPlan plan = setup.planner.plan(step);
    for (std::size_t i = 0; i < plan.slates.size(); ++i) {
      const SlateId& slate = plan.slates[i];
      const bool counts = std::ranges::any_of(
          plan.weights, [i](const std::vector<double>& of_member) { return of_member[i] > 0; });
      if (!counts) continue;
      learned.push_back({step, {slate.graph, setup.order.rows(slate, first)}});
      if (cost_of.try_emplace(slate.graph).second) samples.push_back(learned.back().second);
    }
  }
  // Work tells how many rows are distinct. That of a slate follows from two small plans.
  setup.pool.parallel_for(std::ssize(samples), [&](std::int64_t i) {
    SlateRows slate = samples[static_cast<std::size_t>(i)];
    const auto work_of = [&](std::size_t count) {
      slate.rows.resize(std::min(count, slate.rows.size()));
      return setup.units.step_work(setup.units.build(std::span(&slate, 1), draw));
    };
    const double two = work_of(2), one = work_of(1);
    cost_of.at(slate.graph) = {one, two - one};
  });
  std::vector<double> work(kSteps);
  for (const auto& [step, slate] : learned)
    work[static_cast<std::size_t>(step)] +=
        cost_of[slate.graph].of(static_cast<int>(slate.rows.size()));
  return std::ranges::max_element(work) - work.begin();
}

std::vector<SlateRows> largest_unit(const TrainingSetup& setup) {
  const int first = drawn_by(setup.experiment, 0);
  const bool cut = setup.experiment.data.cuts_segments();
  std::vector<std::int64_t> seen;  // [graphs] nodes
  for (int g = 0; g < setup.data.size(); ++g)
    seen.push_back(cut ? largest_segment(setup.data.graph(g)) : setup.data.seen_nodes(g));
  const auto rows = [&](const std::vector<SlateRows>& slates) {
    std::int64_t sum = 0;
    for (const SlateRows& slate : slates)
      sum += seen[slate.graph] * static_cast<std::int64_t>(slate.rows.size());
    return sum;
  };
  const auto size = [&](int g) { return cut ? seen[g] : setup.data.graph(g).nodes; };
  int graph = 0;
  for (int g = 1; g < setup.data.size(); ++g) {
    if (size(g) > size(graph)) graph = g;
  }
  std::vector<SlateRows> largest{{graph, setup.order.rows({.graph = graph}, first)}};
  for (int step = 0; step < kSteps; ++step) {
    const BatchPlan plan = setup.planner.plan(step);
    for (int unit = 0; unit < plan.units(); ++unit) {
      std::vector<SlateRows> slates = rows_of_unit(plan, setup.order, unit, first);
      if (rows(slates) > rows(largest)) largest = std::move(slates);
    }
  }
  return computed_together(setup.experiment, std::move(largest));
}

GraphDraw largest_draw(const Experiment& experiment) {
  GraphDraw draw = graph_draw(experiment, 0);
  draw.segment = 0;
  return draw;
}

}  // namespace tpudist
