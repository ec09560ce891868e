#include <algorithm>
#include <cmath>

#include "core/means.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"

namespace tpudist {
namespace {

ReportFigure timing_figure(const VariantGroup& group) {
  ReportFigure figure = group.figure("", "timing", {});
  figure.table.columns = {
      "run",         "logged steps", "median step [ms]", "95 % below [ms]", "median wait [ms]",
      "waiting [%]", "training [s]"};
  LineChart chart{.label = "Time of a step and wait for data",
                  .x_name = "step",
                  .y_name = "milliseconds",
                  .zero = true};
  std::size_t runs = 0;
  for (const ReportedVariant* variant : group.variants) runs += variant->runs.size();
  for (const ReportedVariant* variant : group.variants) {
    for (const RunRecord& run : variant->runs) {
      LineChart::Series steps{.name = run.label, .colour = variant->colour, .strong = runs == 1};
      LineChart::Series waits{.name = run.label + " waiting", .colour = 2, .strong = runs == 1};
      double total = 0, waited = 0;
      for (const LearningCurves::Step& step : run.curves.steps) {
        if (!std::isfinite(step.step_seconds) || !std::isfinite(step.wait_seconds)) continue;
        steps.x.push_back(static_cast<double>(step.step));
        steps.y.push_back(1e3 * step.step_seconds);
        waits.y.push_back(1e3 * step.wait_seconds);
        total += step.step_seconds, waited += step.wait_seconds;
      }
      waits.x = steps.x;
      if (steps.x.empty()) continue;
      figure.table.rows.push_back({run.label, TableCell::count(std::ssize(steps.x)),
                                   TableCell(quantile(steps.y, 0.5), "{:.2f}"),
                                   TableCell(quantile(steps.y, 0.95), "{:.2f}"),
                                   TableCell(quantile(waits.y, 0.5), "{:.3f}"),
                                   TableCell(100 * waited / std::max(total, 1e-12), "{:.2f}"),
                                   TableCell(run.curves.steps.back().train_seconds, "{:.1f}")});
      chart.lines.push_back(std::move(steps));
      // Waits of several variants would hide their steps; the table has them.
      if (!group.several()) chart.lines.push_back(std::move(waits));
    }
  }
  figure.legend = group.colours("s");
  if (!group.several())
    figure.legend = {{"s1 strong", "step"}, {"s2 strong", "of these, waiting for data"}};
  figure.sentence =
      "The time of the logged steps of each run, from start to end with communication, and the "
      "part that waited for data: 0 ms where data and plans were ready, as they are read and "
      "planned ahead. Single steps are logged, not means; the machine may have had other work, so "
      "runs are not to be compared by it.";
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection timing_section(const ReportInput& input) {
  return group_section(input, {.id = "timing", .title = "Step time and data wait"},
                       [](const VariantGroup& group, ReportSection& section) {
                         ReportFigure figure = timing_figure(group);
                         if (figure.table.rows.empty())
                           add_missing(
                               section, group, [](const auto&) { return false; },
                               "No step was logged yet (train.log_every).");
                         add_figure(section, std::move(figure));
                       });
}

}  // namespace tpudist
