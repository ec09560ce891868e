#include "train/loop/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/numbers.hpp"
#include "models/network_layout.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

constexpr int kSteps = 20;        // over which costs are averaged
constexpr int kPlannedSteps = 3;  // whose units are planned

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
std::vector<SlateRows> largest_unit(const TrainingSetup& setup) {
  const int member = shares_slates(setup.experiment) ? -1 : 0;
  const auto rows = [&](const std::vector<SlateRows>& slates) {
    std::int64_t sum = 0;
    for (const SlateRows& slate : slates)
      sum += setup.data.graph(slate.graph).nodes * static_cast<std::int64_t>(slate.rows.size());
    return sum;
  };
  int graph = 0;
  for (int g = 1; g < setup.data.size(); ++g) {
    if (setup.data.graph(g).nodes > setup.data.graph(graph).nodes) graph = g;
  }
  std::vector<SlateRows> largest{{graph, setup.order.rows({.graph = graph}, member)}};
  for (int step = 0; step < kSteps; ++step) {
    const BatchPlan plan = setup.planner.plan(step);
    for (int unit = 0; unit < plan.units(); ++unit) {
      std::vector<SlateRows> slates = rows_of_unit(plan, setup.order, unit, member);
      if (rows(slates) > rows(largest)) largest = std::move(slates);
    }
  }
  return computed_together(setup.experiment, std::move(largest));
}

// Which plan a unit gets, and the arithmetic that this saves.
std::string choice_line(const UnitBuilder& units, const PlanComparison& plans) {
  if (!units.takes_refined(plans)) {
    return fmt::format("dense (the refined one would save a factor of {:.2f})", plans.saving());
  }
  return fmt::format("refined, saves a factor of {:.2f} in arithmetic", plans.saving());
}

// Units of the first steps, and how many of them get a refined plan.
std::string refined_line(const TrainingSetup& setup) {
  const int member = shares_slates(setup.experiment) ? -1 : 0;
  std::int64_t all = 0, refined = 0;
  for (int step = 0; step < kPlannedSteps; ++step) {
    const BatchPlan plan = setup.planner.plan(step);
    for (int unit = 0; unit < plan.units(); ++unit) {
      std::vector<Slate> slates;
      for (const SlateRows& slate :
           computed_together(setup.experiment, rows_of_unit(plan, setup.order, unit, member))) {
        slates.push_back(setup.data.slate(slate.graph, slate.rows));
      }
      ++all;
      refined += setup.units.takes_refined(setup.units.compare(slates));
    }
  }
  return fmt::format("{} of {} units of the first {} steps refined", refined, all, kPlannedSteps);
}

}  // namespace

std::string describe_work(const Experiment& experiment, int ranks) {
  ThreadPool pool(1);
  const TrainingSetup setup(experiment, experiment.data.training(), pool, -1, ranks);
  const Dataset& data = setup.data;
  const Network& network = setup.network;

  const std::vector<SlateRows> slates = largest_unit(setup);
  const int largest = slates.front().graph;
  const Unit unit = setup.units.build(slates);
  const PlanComparison plans = setup.units.compare(unit.slates);
  const int chunk = experiment.batch.member_chunk;
  const int together =
      std::min(chunk > 0 ? chunk : setup.units.members_together(unit), experiment.ensemble.members);
  const std::int64_t parameters = network.parameters().parameters();
  const auto flat = static_cast<std::uint64_t>(network.parameters().length()) * 4u *
                    static_cast<std::uint64_t>(experiment.ensemble.members);
  // States of all layers, kept for the backward pass, and as much for their gradients.
  const NetworkLayout layout(experiment.network, network.config_features());
  const auto activations =
      static_cast<std::uint64_t>(2 * 4 * state_floats(layout, *unit.input.plan) * together);
  const std::vector<std::int64_t> total = data.rows_per_graph();

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
      setup.order.steps_per_epoch(), experiment.batch.slates, experiment.batch.configs,
      setup.planner.plan(0).units(), experiment.train.steps, refined_line(setup));
  text += fmt::format(
      "largest unit\n  slates       {}\n  graph        {} ({} nodes, {} edges)\n  plan         {} "
      "rows over all "
      "layers, {}\n"
      "  taken        {}\n"
      "  activations  {} for {} members at a time\n",
      slates.size(), data.graph(largest).name, data.graph(largest).nodes, data.graph(largest).edges,
      format_count(static_cast<std::int64_t>(unit.input.plan->total_rows())),
      format_bytes(unit.input.plan->bytes()), choice_line(setup.units, plans),
      format_bytes(activations), together);
  text += fmt::format("work of {} rank{}, mean of {} steps\n{}", ranks, ranks == 1 ? "" : "s",
                      kSteps, rank_lines(setup.planner, ranks));
  return text;
}

}  // namespace tpudist
