#include "train/loop/largest_unit.hpp"

#include <utility>

namespace tpudist {
namespace {

constexpr int kSteps = 20;  // among whose units the largest is sought

}  // namespace

std::vector<SlateRows> computed_together(const Experiment& experiment,
                                         std::vector<SlateRows> slates) {
  const auto chunk = static_cast<std::size_t>(experiment.batch.config_chunk);
  if (chunk > 0 && slates.size() == 1 && slates[0].rows.size() > chunk) {
    slates[0].rows.resize(chunk);
  }
  return slates;
}

std::vector<SlateRows> largest_unit(const TrainingSetup& setup) {
  const int first = drawn_by(setup.experiment, 0);
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

}  // namespace tpudist
