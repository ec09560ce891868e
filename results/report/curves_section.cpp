#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/means.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kMostPoints = 120;

// A member's values against the step.
struct MemberCurve {
  std::string name;
  std::map<std::int64_t, double> values;
};

// Averages of consecutive steps if there are many, so that a chart stays readable.
class StepBins {
 public:
  explicit StepBins(std::int64_t last)
      : width_(std::max<std::int64_t>(1, (last + kMostPoints - 1) / kMostPoints)) {}
  std::int64_t of(std::int64_t step) const { return (step + width_ - 1) / width_ * width_; }
  std::int64_t width() const { return width_; }

 private:
  std::int64_t width_;
};

std::string member_name(const ReportedVariant& variant, const RunRecord& run, std::size_t m) {
  const std::string member = fmt::format("member {}", run.first_member + static_cast<int>(m));
  if (variant.runs.size() == 1 || run.label.find(member) != std::string::npos)
    return variant.runs.size() == 1 ? member : run.label;
  return run.label + " " + member;
}

std::vector<MemberCurve> loss_curves(const ReportedVariant& variant, const StepBins& bins) {
  std::vector<MemberCurve> curves;
  for (const RunRecord& run : variant.runs) {
    std::vector<std::map<std::int64_t, std::pair<double, int>>> sums;
    for (const LearningCurves::Step& step : run.curves.steps) {
      sums.resize(std::max(sums.size(), step.loss.size()));
      for (std::size_t m = 0; m < step.loss.size(); ++m) {
        if (!std::isfinite(step.loss[m])) continue;
        auto& [sum, count] = sums[m][bins.of(step.step)];
        sum += step.loss[m], ++count;
      }
    }
    for (std::size_t m = 0; m < sums.size(); ++m) {
      MemberCurve curve{member_name(variant, run, m), {}};
      for (const auto& [step, entry] : sums[m]) curve.values[step] = entry.first / entry.second;
      curves.push_back(std::move(curve));
    }
  }
  return curves;
}

std::vector<MemberCurve> score_curves(const ReportedVariant& variant) {
  std::vector<MemberCurve> curves;
  for (const RunRecord& run : variant.runs) {
    std::vector<MemberCurve> own;
    for (const LearningCurves::Evaluation& evaluation : run.curves.evaluations) {
      while (own.size() < evaluation.members.size())
        own.push_back({member_name(variant, run, own.size()), {}});
      for (std::size_t m = 0; m < evaluation.members.size(); ++m) {
        if (std::isfinite(evaluation.members[m]))
          own[m].values[evaluation.step] = evaluation.members[m];
      }
    }
    std::ranges::move(own, std::back_inserter(curves));
  }
  return curves;
}

// Mean and deviation over the members at each step. Nothing where no step has two.
bool add_band(LineChart& chart, const std::vector<MemberCurve>& curves, const std::string& name,
              int colour) {
  std::map<std::int64_t, std::vector<double>> by_step;
  for (const MemberCurve& curve : curves) {
    for (const auto& [step, value] : curve.values) by_step[step].push_back(value);
  }
  LineChart::Band band{.colour = colour};
  LineChart::Series mean{.name = name, .colour = colour, .strong = true};
  for (const auto& [step, values] : by_step) {
    if (values.size() < 2) continue;
    const double average = tpudist::mean(values);
    const double deviation =
        std::sqrt(squares_around(values, average) / static_cast<double>(values.size() - 1));
    band.x.push_back(static_cast<double>(step));
    band.low.push_back(average - deviation);
    band.high.push_back(average + deviation);
    mean.x.push_back(static_cast<double>(step));
    mean.y.push_back(average);
  }
  if (mean.x.empty()) return false;
  chart.bands.push_back(std::move(band));
  chart.lines.push_back(std::move(mean));
  return true;
}

// A figure with the curves of all variants of a collection, while it is built.
struct CurveFigure {
  const VariantGroup& group;
  ReportFigure figure;
  LineChart chart;
  bool thin = false, bands = false, together = false;  // what is drawn

  CurveFigure(const VariantGroup& variants, const std::string& heading, const std::string& table,
              const std::string& y_name)
      : group(variants),
        figure(group.figure(heading, table, {"member", "step", y_name})),
        chart{.label = heading + " by step", .x_name = "step", .y_name = y_name} {}

  void add(const ReportedVariant& variant, const std::vector<MemberCurve>& curves) {
    // Above this number, members of several variants hide each other's means.
    constexpr std::size_t kMostThin = 12;
    const bool drawn = !group.several() || curves.size() * group.variants.size() <= kMostThin ||
                       curves.size() == 1;
    for (const MemberCurve& curve : curves) {
      LineChart::Series line{
          .name = curve.name, .colour = variant.colour, .strong = curves.size() == 1};
      for (const auto& [step, value] : curve.values) {
        line.x.push_back(static_cast<double>(step));
        line.y.push_back(value);
        group.add_row(figure, variant, {curve.name, TableCell::count(step), value});
      }
      if (!drawn) continue;
      thin = thin || !line.strong;
      chart.lines.push_back(std::move(line));
    }
    bands = add_band(chart, curves, about(variant, "mean of members"), variant.colour) || bands;
  }

  ReportFigure finish() {
    figure.legend = group.colours("s");
    const std::string one = group.several() ? "s0" : "s1",
                      band = group.several() ? "band0" : "band1";
    if (thin) figure.legend.push_back({one + " thin", "members"});
    if (bands) {
      figure.legend.push_back({one + " strong", thin ? "their mean" : "mean of members"});
      figure.legend.push_back({band, "one standard deviation"});
    }
    if (together) {
      figure.legend.push_back(
          {group.several() ? "s0 strong dashed" : "s2 strong", "members of a run together"});
    }
    figure.panels = {{"", [chart = chart](double width) { return chart.svg(width); }}};
    return std::move(figure);
  }
};

ReportFigure loss_figure(const VariantGroup& group) {
  std::int64_t last = 0;
  std::set<std::string> kinds;  // only losses of one kind, on slates of one size, are comparable
  for (const ReportedVariant* variant : group.variants) {
    for (const RunRecord& run : variant->runs) last = std::max(last, run.curves.last_step());
    std::string kind;
    for (const ConfigEntry& entry : variant->runs.front().config)
      if (entry.key == "batch.configs" || entry.key.starts_with("loss."))
        kind += entry.key + "=" + entry.value + " ";
    kinds.insert(kind);
  }
  const StepBins bins(last);
  CurveFigure made(group, "Training loss", "loss", "loss");
  for (const ReportedVariant* variant : group.variants)
    made.add(*variant, loss_curves(*variant, bins));
  made.figure.sentence = fmt::format(
      "The loss of each member on the slates that it trained on{}. Members see other slates and "
      "folds, and a lower loss is no better ranking.{}",
      bins.width() > 1 ? fmt::format(", mean of the steps logged within each {}", bins.width())
                       : "",
      kinds.size() == 1 ? ""
                        : " Variants differ by their loss or the size of their slates: their "
                          "losses are on other scales and do not compare.");
  return made.finish();
}

// Adds the score of members together for each run with several members.
void add_together(CurveFigure& made, const ReportedVariant& variant) {
  for (const RunRecord& run : variant.runs) {
    LineChart::Series line{.name = run.label + " together",
                           .colour = made.group.several() ? variant.colour : 2,
                           .strong = true,
                           .dashed = made.group.several()};
    for (const LearningCurves::Evaluation& evaluation : run.curves.evaluations) {
      if (evaluation.members.size() < 2) continue;
      line.x.push_back(static_cast<double>(evaluation.step));
      line.y.push_back(evaluation.ensemble);
      made.group.add_row(made.figure, variant,
                         {line.name, TableCell::count(evaluation.step), evaluation.ensemble});
    }
    // The lines of several variants would hide the means.
    if (line.x.empty() || made.group.several()) continue;
    made.together = true;
    made.chart.lines.push_back(std::move(line));
  }
}

ReportFigure score_figure(const VariantGroup& group) {
  std::int64_t rows = 0;
  bool held_out = false;
  CurveFigure made(group, "Validation score while training", "validation", group.metric());
  for (const ReportedVariant* variant : group.variants) {
    made.add(*variant, score_curves(*variant));
    add_together(made, *variant);
    for (const RunRecord& run : variant->runs) {
      for (const LearningCurves::Evaluation& evaluation : run.curves.evaluations) {
        rows = std::max(rows, evaluation.rows);
        held_out = held_out || evaluation.held_out_only;
      }
    }
  }
  made.figure.sentence = fmt::format(
      "Mean {} over the validation graphs{}{}. The spread of members is on the same graphs: it "
      "says nothing of other graphs. The best step of such a curve looks better than it is.",
      group.metric(), rows > 0 ? fmt::format(", on at most {} rows of each", rows) : "",
      held_out ? ", each scored by the members that never trained on it" : "");
  return made.finish();
}

}  // namespace

ReportSection curves_section(const ReportInput& input) {
  return group_section(
      input, {.id = "curves", .title = "Learning curves"},
      [](const VariantGroup& group, ReportSection& section) {
        const auto any = [](auto list) {
          return [list](const ReportedVariant& variant) {
            return std::ranges::any_of(
                variant.runs, [&](const RunRecord& run) { return !(run.curves.*list).empty(); });
          };
        };
        add_missing(section, group, any(&LearningCurves::steps),
                    "No step was logged yet (train.log_every).");
        add_missing(section, group, any(&LearningCurves::evaluations),
                    "No score was logged while training; train.evaluate_every gives one.");
        add_figure(section, loss_figure(group));
        add_figure(section, score_figure(group));
      });
}

}  // namespace tpudist
