#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "report/charts/line_chart.hpp"
#include "report/sections.hpp"
#include "report/variant_section.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kMostPoints = 120;

// A member's values against the step.
struct MemberCurve {
  std::string name;
  std::map<std::int64_t, double> values;
};

// Averages of consecutive steps where there are many, so that a chart stays readable.
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
    for (const LoggedStep& step : run.curves.steps) {
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
    for (const LoggedEvaluation& evaluation : run.curves.evaluations) {
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

// Mean and deviation over the members at each step.
void add_band(LineChart& chart, const std::vector<MemberCurve>& curves, const std::string& name) {
  std::map<std::int64_t, std::vector<double>> by_step;
  for (const MemberCurve& curve : curves) {
    for (const auto& [step, value] : curve.values) by_step[step].push_back(value);
  }
  LineBand band;
  LineSeries mean{.name = name, .colour = 1, .strong = true, .x = {}, .y = {}};
  for (const auto& [step, values] : by_step) {
    if (values.size() < 2) continue;
    double sum = 0, squares = 0;
    for (const double value : values) sum += value;
    const double average = sum / static_cast<double>(values.size());
    for (const double value : values) squares += (value - average) * (value - average);
    const double deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
    band.x.push_back(static_cast<double>(step));
    band.low.push_back(average - deviation);
    band.high.push_back(average + deviation);
    mean.x.push_back(static_cast<double>(step));
    mean.y.push_back(average);
  }
  if (mean.x.empty()) return;
  chart.bands.push_back(std::move(band));
  chart.lines.push_back(std::move(mean));
}

void add_members(LineChart& chart, ReportTable& table, const std::vector<MemberCurve>& curves) {
  for (const MemberCurve& curve : curves) {
    LineSeries line{
        .name = curve.name, .colour = 1, .strong = curves.size() == 1, .x = {}, .y = {}};
    for (const auto& [step, value] : curve.values) {
      line.x.push_back(static_cast<double>(step));
      line.y.push_back(value);
      table.rows.push_back({curve.name, TableCell::count(step), TableCell(value)});
    }
    chart.lines.push_back(std::move(line));
  }
}

ReportFigure loss_figure(const ReportedVariant& variant) {
  std::int64_t last = 0;
  for (const RunRecord& run : variant.runs) last = std::max(last, run.curves.last_step());
  const StepBins bins(last);
  const std::vector<MemberCurve> curves = loss_curves(variant, bins);
  ReportFigure figure;
  figure.heading = "Training loss" + (variant.title.empty() ? "" : ": " + variant.title);
  figure.sentence = fmt::format(
      "The loss of each member on the slates that it trained on{}; the band is one standard "
      "deviation "
      "between members. Members see other slates and folds, and a lower loss is no better ranking.",
      bins.width() > 1 ? fmt::format(", averaged over the logged ones of {} steps", bins.width())
                       : "");
  figure.legend = {
      {"s1 thin", "members"}, {"s1 strong", "their mean"}, {"band1", "one standard deviation"}};
  figure.table = {"loss" + variant.file_end, {"member", "step", "loss"}, {}};
  LineChart chart{
      .label = "Training loss of all members by step", .x_name = "step", .y_name = "loss"};
  add_members(chart, figure.table, curves);
  add_band(chart, curves, "mean of members");
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

ReportFigure score_figure(const ReportedVariant& variant) {
  const std::vector<MemberCurve> curves = score_curves(variant);
  std::int64_t rows = 0;
  bool held_out = false;
  ReportFigure figure;
  figure.heading =
      "Validation score while training" + (variant.title.empty() ? "" : ": " + variant.title);
  figure.table = {"validation" + variant.file_end, {"member", "step", variant.metric}, {}};
  LineChart chart{.label = "Validation score of all members by step",
                  .x_name = "step",
                  .y_name = variant.metric};
  add_members(chart, figure.table, curves);
  add_band(chart, curves, "mean of members");
  for (const RunRecord& run : variant.runs) {
    LineSeries line{.name = run.label + " ensemble", .colour = 2, .strong = true, .x = {}, .y = {}};
    for (const LoggedEvaluation& evaluation : run.curves.evaluations) {
      rows = std::max(rows, evaluation.rows);
      held_out = held_out || evaluation.held_out_only;
      if (evaluation.members.size() < 2) continue;
      line.x.push_back(static_cast<double>(evaluation.step));
      line.y.push_back(evaluation.ensemble);
      figure.table.rows.push_back(
          {line.name, TableCell::count(evaluation.step), TableCell(evaluation.ensemble)});
    }
    if (!line.x.empty()) chart.lines.push_back(std::move(line));
  }
  figure.sentence = fmt::format(
      "Mean {} over the validation graphs{}{}. The band is one standard deviation between members "
      "on the "
      "same graphs: it says nothing of other graphs. The best step of such a curve looks better "
      "than it is.",
      variant.metric, rows > 0 ? fmt::format(", on at most {} rows of each", rows) : "",
      held_out ? ", each scored by the members that never trained on it" : "");
  figure.legend = {{"s1 thin", "members"},
                   {"s1 strong", "their mean"},
                   {"band1", "one standard deviation"},
                   {"s2 strong", "members of a run together"}};
  figure.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  return figure;
}

}  // namespace

ReportSection curves_section(const ReportInput& input) {
  ReportSection section{.id = "curves", .title = "Learning curves"};
  for (std::size_t g = 0; g < input.shown(); ++g) {
    const ReportedVariant& variant = input.variants[g];
    ReportFigure loss = loss_figure(variant), scores = score_figure(variant);
    if (loss.table.rows.empty())
      section.missing.push_back(about(variant, "No step was logged yet (train.log_every)."));
    if (scores.table.rows.empty()) {
      section.missing.push_back(
          about(variant, "No score was logged while training; train.evaluate_every gives one."));
    }
    add_figure(section, std::move(loss));
    add_figure(section, std::move(scores));
  }
  return section;
}

}  // namespace tpudist
