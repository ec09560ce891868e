#include "train/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/numbers.hpp"
#include "models/network.hpp"
#include "models/network_layout.hpp"
#include "train/batch_plan.hpp"
#include "train/folds.hpp"
#include "train/step_work.hpp"
#include "train/unit_builder.hpp"

namespace tpudist {
namespace {

constexpr int kSteps = 20;        // over which costs are averaged
constexpr int kPlannedSteps = 3;  // whose units are planned

std::vector<std::int64_t> rows_of(const Dataset& data) {
  std::vector<std::int64_t> rows;
  for (int g = 0; g < data.size(); ++g) rows.push_back(data.rows(g));
  return rows;
}

std::vector<std::int64_t> nodes_of(const Dataset& data) {
  std::vector<std::int64_t> nodes;
  for (int g = 0; g < data.size(); ++g) nodes.push_back(data.graph(g).nodes);
  return nodes;
}

std::string rank_lines(const BatchPlanner& planner, int ranks) {
  std::vector<double> cost(static_cast<std::size_t>(ranks), 0.0);
  double slowest = 0, total = 0;
  for (int step = 0; step < kSteps; ++step) {
    const BatchPlan plan = planner.plan(step);
    for (std::size_t r = 0; r < cost.size(); ++r) cost[r] += plan.rank_cost[r];
    slowest += *std::max_element(plan.rank_cost.begin(), plan.rank_cost.end());
    total += std::accumulate(plan.rank_cost.begin(), plan.rank_cost.end(), 0.0);
  }
  std::string text;
  for (std::size_t r = 0; r < cost.size(); ++r) {
    text += fmt::format("  rank {:<4} {:>14} rows a step ({:.1f} % of the work)\n", r,
                        format_count(static_cast<std::int64_t>(cost[r] / kSteps)),
                        total > 0 ? 100 * cost[r] / total : 0);
  }
  text += fmt::format("  balance    {:.1f} % (mean rank / slowest rank, step by step)\n",
                      slowest > 0 ? 100 * total / ranks / slowest : 100);
  return text;
}

// What is computed at a time of a unit's slates: all of them, or the first chunk of a single one.
std::vector<SlateRows> computed_together(const Experiment& experiment,
                                         std::vector<SlateRows> slates) {
  const auto chunk = static_cast<std::size_t>(experiment.batch.config_chunk);
  if (chunk > 0 && slates.size() == 1 && slates[0].rows.size() > chunk) {
    slates[0].rows.resize(chunk);
  }
  return slates;
}

// The unit with the most (nodes x configurations): of the first steps, or a slate of the largest
// graph.
std::vector<SlateRows> largest_unit(const Experiment& experiment, const Dataset& data,
                                    const SlateOrder& order, const BatchPlanner& planner) {
  const int member = shares_slates(experiment) ? -1 : 0;
  const auto rows = [&](const std::vector<SlateRows>& slates) {
    std::int64_t sum = 0;
    for (const SlateRows& slate : slates)
      sum += data.graph(slate.graph).nodes * static_cast<std::int64_t>(slate.rows.size());
    return sum;
  };
  const std::vector<std::int64_t> nodes = nodes_of(data);
  const auto graph = static_cast<int>(std::max_element(nodes.begin(), nodes.end()) - nodes.begin());
  std::vector<SlateRows> largest{{graph, order.rows({.graph = graph}, member)}};
  for (int step = 0; step < kSteps; ++step) {
    const BatchPlan plan = planner.plan(step);
    for (int unit = 0; unit < plan.units(); ++unit) {
      std::vector<SlateRows> slates = rows_of_unit(plan, order, unit, member);
      if (rows(slates) > rows(largest)) largest = std::move(slates);
    }
  }
  return computed_together(experiment, std::move(largest));
}

// Which plan a unit gets, and the arithmetic that this saves.
std::string choice_line(const UnitBuilder& units, const PlanComparison& plans) {
  if (!units.takes_refined(plans)) {
    return fmt::format("dense (the refined one would save a factor of {:.2f})", plans.saving());
  }
  return fmt::format("refined, saves a factor of {:.2f} in arithmetic", plans.saving());
}

// Units of the first steps, and how many of them get a refined plan.
std::string refined_line(const Experiment& experiment, const Dataset& data, const SlateOrder& order,
                         const BatchPlanner& planner, const UnitBuilder& units) {
  const int member = shares_slates(experiment) ? -1 : 0;
  std::int64_t all = 0, refined = 0;
  for (int step = 0; step < kPlannedSteps; ++step) {
    const BatchPlan plan = planner.plan(step);
    for (int unit = 0; unit < plan.units(); ++unit) {
      std::vector<Slate> slates;
      for (const SlateRows& slate :
           computed_together(experiment, rows_of_unit(plan, order, unit, member))) {
        slates.push_back(data.slate(slate.graph, slate.rows));
      }
      ++all;
      refined += units.takes_refined(units.compare(slates));
    }
  }
  return fmt::format("{} of {} units of the first {} steps refined", refined, all, kPlannedSteps);
}

}  // namespace

std::string describe_work(const Experiment& experiment, int ranks) {
  ThreadPool pool(1);
  const Dataset data = Dataset::open(experiment.data.training(), pool);
  const Network network(experiment.network, experiment.data.collection.config_features(), -1, pool);
  const SlateOrder order({experiment.order_seed, experiment.batch.slates, experiment.batch.configs,
                          experiment.batch.draw},
                         rows_of(data), data.selection_hash());
  const BatchPlanner planner(experiment, order, nodes_of(data), rows_of(data),
                             graph_folds(experiment, data), ranks);
  const UnitBuilder units(data, network, experiment.plan);

  const std::vector<SlateRows> slates = largest_unit(experiment, data, order, planner);
  const int largest = slates.front().graph;
  const Unit unit = units.build(slates);
  const PlanComparison plans = units.compare(unit.slates);
  const int chunk = experiment.batch.member_chunk;
  const int together =
      std::min(chunk > 0 ? chunk : units.members_together(unit), experiment.ensemble.members);
  const std::int64_t parameters = network.parameters().parameters();
  const auto flat = static_cast<std::uint64_t>(network.parameters().length()) * 4u *
                    static_cast<std::uint64_t>(experiment.ensemble.members);
  // States of all layers, kept for the backward pass, and as much for their gradients.
  const NetworkLayout layout(experiment.network, network.config_features());
  const auto activations =
      static_cast<std::uint64_t>(2 * 4 * state_floats(layout, *unit.input.plan) * together);
  const auto total = rows_of(data);

  std::string text;
  text += fmt::format(
      "data\n  graphs       {}\n  rows         {}\n  in memory    {}\n", data.size(),
      format_count(
          static_cast<std::int64_t>(std::accumulate(total.begin(), total.end(), std::int64_t{0}))),
      format_bytes(data.resident_bytes()));
  text += fmt::format(
      "model\n  parameters   {} a member, {} members\n  buffers      {} (parameters, gradient, two "
      "moments)\n",
      format_count(static_cast<std::int64_t>(parameters)), experiment.ensemble.members,
      format_bytes(4 * flat));
  text += fmt::format(
      "steps\n  an epoch     {} steps of {} slates x {} configurations in {} units\n  training     "
      "{} steps\n  plans        {}\n",
      order.steps_per_epoch(), experiment.batch.slates, experiment.batch.configs,
      planner.plan(0).units(), experiment.train.steps,
      refined_line(experiment, data, order, planner, units));
  text += fmt::format(
      "largest unit\n  slates       {}\n  graph        {} ({} nodes, {} edges)\n  plan         {} "
      "rows over all "
      "layers, {}\n"
      "  taken        {}\n"
      "  activations  {} for {} members at a time\n",
      slates.size(), data.graph(largest).name, data.graph(largest).nodes, data.graph(largest).edges,
      format_count(static_cast<std::int64_t>(unit.input.plan->total_rows())),
      format_bytes(unit.input.plan->bytes()), choice_line(units, plans), format_bytes(activations),
      together);
  text += fmt::format("work of {} rank{}, mean of {} steps\n{}", ranks, ranks == 1 ? "" : "s",
                      kSteps, rank_lines(planner, ranks));
  return text;
}

}  // namespace tpudist
