#include "results/scores/table_intervals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/means.hpp"
#include "core/numbers.hpp"
#include "results/scores/slowdowns.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/interval.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {
namespace {

constexpr double kFarBelow = 0.10;  // the median of trainings, as of members (rejected_members)

constexpr std::string_view kTrainedOn =
    "no interval, since members rank graphs of a split that they were trained on\n";

// The parts of a table; the table itself if it is of one collection.
std::span<const TableJudgement> parts_of(const TableJudgement& table) {
  return table.parts.empty() ? std::span(&table, 1) : std::span(table.parts);
}

// The table with each score replaced by the mean over its parts.
TableJudgement mean_of_parts(const TableJudgement& table) {
  if (table.parts.empty()) return table;
  TableJudgement mean = table;
  const auto of = [&](const auto& value) {
    double sum = 0;
    for (const TableJudgement& part : table.parts) sum += value(part);
    return sum / static_cast<double>(table.parts.size());
  };
  mean.kept = of([](const TableJudgement& part) { return part.kept; });
  for (std::size_t c = 0; c < mean.gains.size(); ++c)
    mean.gains[c] = of([&](const TableJudgement& part) { return part.gains[c]; });
  for (std::size_t t = 0; t < mean.without_training.size(); ++t)
    mean.without_training[t] =
        of([&](const TableJudgement& part) { return part.without_training[t]; });
  return mean;
}

// The title, the line for these graphs, and for one training the line that limits it.
std::string these_graphs_text(const TableIntervals& found, const std::string& source) {
  const std::string text = "95 % intervals of members together\n  ";
  if (!found.these_graphs) {
    return text +
           no_run_line(found.columns > 1 ? "without one of them a graph has no score"
                                         : "one training of one member; " + more_trainings_text() +
                                               ", and give all runs") +
           "\n";
  }
  if (found.trainings > 1) return text + run_line(*found.these_graphs, source) + "\n";
  return text + member_line(*found.these_graphs, source) + "\n  " + one_training_line() + "\n";
}

// The ensemble's scores on the graphs of `table`, as one run; graphs without a score are left out.
RunScoreTable ensemble_scores(const TableJudgement& table) {
  RunScoreTable scores;
  for (std::size_t g = 0; g < table.graphs.size(); ++g) {
    const double score = table.graphs[g].kept;
    if (std::isnan(score)) continue;
    scores.graphs.push_back(table.graphs[g].name);
    scores.families.push_back(table.graphs[g].family);
    scores.scores.push_back({score});
    if (!std::isnan(table.graphs[g].metrics.tile_score))
      scores.lowest = -std::numeric_limits<double>::infinity();
  }
  return scores;
}

// Of the combination of each graph that members never saw.
std::vector<GraphSlowdowns> slowdowns_of(const TableJudgement& table) {
  std::vector<GraphSlowdowns> graphs;
  for (const GraphEvaluation& graph : table.graphs) {
    const GraphMetrics& own = graph.metrics;
    graphs.push_back(graph_slowdowns(
        graph, {own.slowdown_1, own.slowdown_5, own.slowdown_10, own.slowdown_100}));
  }
  return graphs;
}

}  // namespace

nlohmann::json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {{"value", interval->value},
          {"error", interval->error},
          {"degrees", interval->degrees},
          {"low", interval->low},
          {"high", interval->high}};
}

nlohmann::json family_interval_json(const std::optional<FamilyInterval>& found) {
  if (!found) return nullptr;
  nlohmann::json json = interval_json(found->interval);
  json["families"] = found->families;
  json["graphs"] = found->graphs;
  json["collections"] = found->collections;
  json["runs"] = found->runs;
  json["family_variance"] = found->family.variance;
  json["run_variance"] = found->run_variance;
  json["notes"] = found->notes;
  return json;
}

std::string collapse_line(const RunScoreTable& scores) {
  std::vector<double> means = run_means(scores);
  const int trainings = scores.run_count();
  const auto collapsed = static_cast<int>(std::erase_if(
      means, [limit = median(means) - kFarBelow](double own) { return own < limit; }));
  if (trainings < 3) return rare_line(trainings, "trainings", "collapse");
  const std::string text =
      fmt::format("{} of {} trainings collapsed, so the rate is at most {:.0f} % (95 %)", collapsed,
                  trainings, 100 * rate_bound(collapsed, trainings));
  if (collapsed == 0) return text;
  return text + fmt::format("; without collapses the mean is {:.4f}", mean(means));
}

TableIntervals table_intervals(const TableJudgement& table) {
  TableIntervals result{.score = table.kept};
  const RunScoreTable scores = ensemble_scores(table);
  if (scores.scores.empty() || table.trained_on) return result;
  std::vector<double> without;
  for (std::size_t c = 0; c < table.gains.size(); ++c) {
    const bool taken =
        c < table.weights.size() ? table.weights[c] > 0 : !std::isnan(table.gains[c]);
    if (taken) without.push_back(table.kept - table.gains[c]);
  }
  result.columns = static_cast<int>(without.size());
  result.trainings = static_cast<int>(table.without_training.size());
  if (result.trainings > 1) without = table.without_training;
  if (without.size() > 1 && all_finite(without))
    result.these_graphs = jackknife_interval(result.score, without, kIntervalLevel, scores.reach());
  result.families = family_interval({&scores, 1});
  return result;
}

TableIntervals final_intervals(std::span<const TableJudgement> tables) {
  TableIntervals result{.trainings = std::numeric_limits<int>::max()};
  std::vector<RunScoreTable> collections;
  std::vector<VarianceEstimate> spreads;
  for (const TableJudgement& table : tables) {
    for (const TableJudgement& part : parts_of(table)) collections.push_back(ensemble_scores(part));
  }
  const auto count = static_cast<double>(collections.size());
  for (const TableJudgement& table : tables) {
    const double share = static_cast<double>(parts_of(table).size()) / count;
    const TableIntervals found = table_intervals(mean_of_parts(table));
    result.score += share * found.score;
    result.trainings = std::min(result.trainings, found.trainings);
    result.columns = std::max(result.columns, found.columns);
    if (found.these_graphs)
      spreads.push_back(
          {std::pow(share * found.these_graphs->error, 2), found.these_graphs->degrees});
  }
  if (tables.empty()) result.score = kNone;
  if (std::isnan(result.score)) return result;
  if (std::ranges::any_of(tables, &TableJudgement::trained_on)) return result;
  if (spreads.size() == tables.size())
    result.these_graphs =
        t_interval(result.score, satterthwaite(spreads), kIntervalLevel,
                   std::ranges::min(collections, {}, &RunScoreTable::lowest).reach());
  result.families = family_interval(collections);
  return result;
}

std::string final_interval_text(std::span<const TableJudgement> tables) {
  const TableIntervals found = final_intervals(tables);
  if (std::isnan(found.score)) return {};
  if (std::ranges::any_of(tables, &TableJudgement::trained_on)) return std::string(kTrainedOn);
  return these_graphs_text(
             found, found.trainings > 1 ? "jackknife of trainings" : "jackknife of members") +
         family_text(found.families);
}

std::string table_interval_text(const TableJudgement& table) {
  if (std::isnan(table.kept)) return {};
  if (table.trained_on) return fmt::format("{}: {}", table.title, kTrainedOn);
  const TableIntervals found = table_intervals(table);
  const bool several = found.trainings > 1;
  const std::string of = several ? counted(found.trainings, "training")
                                 : counted(found.columns, table.out_of_fold ? "column" : "member");
  return table.title + ", " + these_graphs_text(found, "jackknife of " + of) +
         (found.these_graphs && several
              ? "  " + rare_line(found.trainings, "trainings", "collapse") + "\n"
              : "") +
         family_text(found.families) + slowdown_table({{"mean", slowdowns_of(table)}});
}

nlohmann::json table_interval_json(const TableJudgement& table) {
  const TableIntervals found = table_intervals(table);
  nlohmann::json these = interval_json(found.these_graphs);
  if (found.these_graphs) {
    these["between"] = found.trainings > 1 ? "trainings" : "members of one training";
    these["trainings"] = found.trainings;
    these["members"] = found.columns;
  }
  return {{"these_graphs", these},
          {"other_families", family_interval_json(found.families)},
          {"slowdown", table.trained_on ? nlohmann::json() : slowdown_json(slowdowns_of(table))}};
}

}  // namespace tpudist
