#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>

#include "core/means.hpp"
#include "data/schema/collection.hpp"
#include "results/report/charts/charts.hpp"
#include "results/report/sections.hpp"
#include "results/report/variant_pairs.hpp"
#include "results/scores/score_table.hpp"
#include "results/scores/system_scores.hpp"
#include "statistics/intervals/interval.hpp"

namespace tpudist {
namespace {

// The graph's combined ranking; null if there is none.
const RankedGraph* ranked_graph(const ReportedVariant& variant, const PredictionEntry& graph) {
  for (const RankedGraph& ranked : variant.rankings.graphs) {
    if (ranked.name == graph.name && ranked.split == graph.split) return &ranked;
  }
  return nullptr;
}

// Adds a graph's noise ceiling to the row of the chart. Returns the last cells of the table's row.
std::vector<TableCell> add_limits(IntervalChart::Row& row, const RankedGraph* ranked) {
  const double none = std::nan("");
  if (!ranked) return {none, "", none, none};
  const NoiseCeiling& ceiling = ranked->limits.ceiling;
  if (ceiling.value) {
    row.limit = *ceiling.value;
    row.limit_interval = ChartInterval{ceiling.low, ceiling.high};
  }
  return {ceiling.value,
          ceiling.value ? fmt::format("{:.4f} to {:.4f}{}", ceiling.low, ceiling.high,
                                      ceiling.normal_assumed ? ", noise assumed normal" : "")
                        : ceiling.reason,
          ranked->limits.tied_share, ranked->limits.sampling_deviation};
}

const RunScoreTable& scores_of(const ReportedVariant& variant, bool of_folds) {
  return of_folds ? variant.out_of_fold : variant.valid;
}

const ScoreMatrix& matrix_of(const ReportedVariant& variant, bool of_folds) {
  return of_folds ? variant.out_of_fold : variant.members;
}

// The rows of one graph, one for each variant that scored it.
struct GraphRows {
  double score = 0;  // of the first variant, for the order
  std::vector<IntervalChart::Row> rows;
};

class GraphFigure {
 public:
  GraphFigure(const VariantGroup& group, bool of_folds) : group_(group), of_folds_(of_folds) {}

  ReportFigure make() {
    const std::string heading = of_folds_ ? "Graphs out of fold" : "Validation graphs";
    figure_ = group_.figure(
        heading, of_folds_ ? "graphs-out-of-fold" : "graphs-valid",
        {"graph", "family", "fold", "rows", "mean", "low", "high", "lowest", "highest", "together",
         "ceiling", "ceiling interval", "tied pairs", "sampling deviation"});
    for (const ReportedVariant* variant : group_.variants) add_variant(*variant);
    figure_.sentence = sentence();
    draw(heading);
    figure_.legend = group_.colours("f");
    if (!group_.several()) figure_.legend.push_back({"f1", "mean"});
    if (together_) figure_.legend.push_back({group_.several() ? "q0" : "q2", "members together"});
    if (limits_) figure_.legend.push_back({"limit", "noise ceiling with its interval"});
    return std::move(figure_);
  }

 private:
  std::string sentence() const {
    std::string text = fmt::format(
        "{} of each graph on {}: the large dot is the mean of the members", group_.metric(),
        most_rows_ > 0 ? fmt::format("at most {} rows", most_rows_) : "all measured rows");
    if (trainings_) text += ", the line its 95 % interval if trained again";
    if (members_) text += ", the line the 95 % interval for other members of the training";
    if (!group_.several() && (trainings_ || members_))
      text += fmt::format(", small dots are {}", trainings_ ? "trainings" : "members");
    text += ".";
    if (of_folds_) text += " Every score is by members that never saw the graph's family.";
    return text + " It shows which graphs are hard for these runs, not why." + collections_;
  }

  // The score of members together; NaN if unknown.
  double together_on(const ReportedVariant& variant, const std::string& graph) const {
    const auto at = std::ranges::find(variant.together.graphs, graph);
    if (of_folds_ || at == variant.together.graphs.end() || variant.members.rows.size() < 2)
      return std::nan("");
    const auto& scores =
        variant.together.scores[static_cast<std::size_t>(at - variant.together.graphs.begin())];
    return mean(scores);
  }

  // The means of several collections that were scored together, including a collection without
  // scores; else empty.
  std::string collections_text(const ReportedVariant& variant, const ScoreMatrix& matrix,
                               std::span<const double> means) const {
    const Collection all{matrix.collection};
    if (!is_joined(all)) return {};
    std::vector<CollectionScore> scores;
    for (const Collection& part : parts_of(all)) {
      std::vector<double> own;
      for (std::size_t g = 0; g < means.size(); ++g) {
        if (collection_of_id(matrix.entries[g].name) == part.name) own.push_back(means[g]);
      }
      scores.push_back({part.name, mean_of_known(own)});
    }
    scores.push_back({std::string(kMeanOfCollections), final_score(scores)});
    return fmt::format(" {}: {}.",
                       group_.several() ? "Variant " + variant.runs.front().variant
                                        : std::string("Means of the members"),
                       collection_scores_text(scores));
  }

  void add_variant(const ReportedVariant& variant) {
    const ScoreMatrix& matrix = matrix_of(variant, of_folds_);
    if (matrix.rows.empty()) return;
    most_rows_ = std::max(most_rows_, matrix.most_rows);
    const RunScoreTable& trainings = scores_of(variant, of_folds_);
    RunScoreTable spread = matrix;
    const bool several = trainings.run_count() > 1 && trainings.graphs == spread.graphs;
    if (several) spread = trainings;
    if (spread.run_count() > 1) (several ? trainings_ : members_) = true;
    std::vector<double> means;
    for (const std::vector<double>& values : spread.scores) means.push_back(mean(values));
    collections_ += collections_text(variant, matrix, means);
    for (std::size_t g = 0; g < matrix.graphs.size(); ++g)
      add_graph(variant, matrix, g, means[g], spread);
  }

  void add_graph(const ReportedVariant& variant, const ScoreMatrix& matrix, std::size_t g,
                 double mean, const RunScoreTable& spread) {
    const PredictionEntry& graph = matrix.entries[g];
    const std::vector<double>& values = spread.scores[g];
    const std::string& label = matrix.graphs[g];
    const double none = std::nan(""), together = together_on(variant, label);
    IntervalChart::Row row{.label = label,
                           .value = mean,
                           .colour = variant.colour,
                           .second_colour = group_.several() ? variant.colour : 2};
    if (values.size() > 1)
      row.interval = ends_of(mean_interval(values, kIntervalLevel, spread.reach()));
    if (!group_.several()) row.dots = values;
    if (std::isfinite(together)) row.second = together, together_ = true;
    row.title = about(variant, fmt::format("{}: mean {:.4f}", label, row.value));
    const auto [low, high] = std::ranges::minmax(values);
    std::vector<TableCell> cells{label,
                                 matrix.families[g],
                                 graph.fold < 0 ? "" : TableCell::count(graph.fold),
                                 TableCell::count(graph.rows),
                                 row.value,
                                 row.interval ? row.interval->low : none,
                                 row.interval ? row.interval->high : none,
                                 low,
                                 high,
                                 together};
    std::ranges::move(add_limits(row, ranked_graph(variant, graph)), std::back_inserter(cells));
    limits_ = limits_ || row.limit;
    group_.add_row(figure_, variant, std::move(cells));
    const auto [at, fresh] = places_.try_emplace(label, graphs_.size());
    if (fresh) graphs_.push_back({row.value, {}});
    if (!fresh) {
      row.label.clear();
      row.limit.reset(), row.limit_interval.reset();  // once for a graph is enough
    }
    graphs_[at->second].rows.push_back(std::move(row));
  }

  void draw(const std::string& heading) {
    std::ranges::stable_sort(graphs_, std::greater(), &GraphRows::score);
    const std::size_t most = group_.several() ? 20 : 40;
    if (graphs_.size() > most) {
      figure_.sentence +=
          fmt::format(" The {} best and the {} worst of {} graphs are drawn; the table has all.",
                      most / 2, most / 2, graphs_.size());
      graphs_.erase(graphs_.begin() + static_cast<std::ptrdiff_t>(most / 2),
                    graphs_.end() - static_cast<std::ptrdiff_t>(most / 2));
    }
    IntervalChart chart{.label = heading, .x_name = group_.metric()};
    for (GraphRows& graph : graphs_) std::ranges::move(graph.rows, std::back_inserter(chart.rows));
    figure_.panels = {{"", [chart](double width) { return chart.svg(width); }}};
  }

  const VariantGroup& group_;
  const bool of_folds_;
  ReportFigure figure_;
  std::vector<GraphRows> graphs_;
  std::map<std::string, std::size_t> places_;  // in graphs_
  std::string collections_;                    // the last sentences
  std::int64_t most_rows_ = 0;
  bool trainings_ = false, members_ = false, together_ = false, limits_ = false;
};

}  // namespace

ReportSection graphs_section(const ReportInput& input) {
  return group_section(input, {.id = "graphs", .title = "Score of each graph"},
                       [](const VariantGroup& group, ReportSection& section) {
                         add_missing(
                             section, group,
                             [](const ReportedVariant& variant) {
                               return !variant.members.rows.empty() ||
                                      !variant.out_of_fold.rows.empty();
                             },
                             "No scores of graphs yet; a run writes them when its steps "
                             "are done (predictions.rows, or train.last_evaluation).");
                         for (const bool of_folds : {false, true})
                           add_figure(section, GraphFigure(group, of_folds).make());
                       });
}

}  // namespace tpudist
