#include "statistics/intervals/score_intervals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/family_variance.hpp"
#include "statistics/intervals/run_variance.hpp"

namespace tpudist {
namespace {

// Sets all of a FamilyInterval except V_fam, and the interval from both.
FamilyInterval with_runs(std::span<const RunScoreTable> collections, const VarianceEstimate& family,
                         double level) {
  FamilyInterval result;
  result.family = family;
  result.collections = static_cast<int>(collections.size());
  const auto count = static_cast<double>(collections.size());
  double mean = 0, lowest = 1;
  std::set<std::string> families;
  std::vector<VarianceEstimate> terms{family};
  for (const RunScoreTable& own : collections) {
    result.runs =
        &own == collections.data() ? own.run_count() : std::min(result.runs, own.run_count());
    result.graphs += own.graph_count();
    families.insert(own.families.begin(), own.families.end());
    mean += mean_score(own) / count;
    lowest = std::min(lowest, own.lowest);
    if (own.run_count() < 2) continue;
    const RunVariance runs = run_variance(own);
    for (VarianceEstimate term : {runs.run_term(), runs.training_term()}) {
      term.variance /= count * count;
      result.run_variance += term.variance;
      terms.push_back(term);
    }
  }
  result.families = static_cast<int>(families.size());
  result.interval = clipped(t_interval(mean, howe(terms, level), level), lowest);
  return result;
}

std::string line(std::string_view question, std::string_view answer) {
  return fmt::format("{:<31}  {}", question, answer);
}

std::string count(int number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

constexpr std::string_view kTheseGraphs = "these graphs, other runs",
                           kOtherFamilies = "other families, other runs",
                           kThisModel = "other families, this model only",
                           kMembers = "other members of this training";

}  // namespace

std::optional<Interval> run_interval(const RunScoreTable& scores, double level) {
  scores.check();
  if (scores.run_count() < 2) return std::nullopt;
  return clipped(mean_interval(run_means(scores), level), scores.lowest);
}

std::optional<FamilyInterval> family_interval(std::span<const RunScoreTable> collections,
                                              double level) {
  std::vector<GraphValues> means;
  for (const RunScoreTable& own : collections) {
    own.check();
    if (own.family_count() < 2) return std::nullopt;
    means.push_back({own.families, graph_means(own)});
  }
  return with_runs(collections, family_variance(means), level);
}

std::string interval_text(const Interval& interval) {
  if (!interval.is_known())
    return fmt::format("{:.4f} (no interval: {})", interval.value, alike_line("all scores"));
  return fmt::format("{:.4f} ({:.4f} to {:.4f}, t({:.3g}))", interval.value, interval.low,
                     interval.high, interval.degrees);
}

std::string family_line(const FamilyInterval& found) {
  return line(
      found.runs == 1 ? kThisModel : kOtherFamilies,
      fmt::format("{}; {} of {}{}{}", interval_text(found.interval),
                  count(found.graphs, "graph", "graphs"),
                  count(found.families, "family", "families"),
                  found.collections > 1 ? fmt::format(" in {} collections", found.collections) : "",
                  found.runs > 1 ? fmt::format(", {} runs", found.runs) : ""));
}

std::string run_line(const Interval& interval, const std::string& source) {
  return line(kTheseGraphs, interval_text(interval) + "; " + source);
}

std::string member_line(const Interval& interval, const std::string& source) {
  return line(kMembers, interval_text(interval) + "; " + source);
}

std::string one_training_line() {
  return "one training says nothing of others; train again with another seed.init and "
         "seed.order, as often as you decide beforehand";
}

std::string rare_failure_line(int families) {
  return fmt::format(
      "{} families without a failure allow it in up to {:.0f} % of families (95 %); where some "
      "fail or differ far more than others, such intervals cover 63 to 90 %",
      families, 100 * rate_bound(0, families));
}

std::string rare_collapse_line(int trainings) {
  return fmt::format("{} trainings without a collapse allow a rate of up to {:.0f} % (95 %)",
                     trainings, 100 * rate_bound(0, trainings));
}

std::string alike_line(const std::string& what) {
  return what + " are alike, so their spread is not known";
}

std::string no_run_line(const std::string& reason) {
  return line(kTheseGraphs, "not enough: " + reason);
}

std::string no_family_line() {
  return line("other families", "not enough: all graphs are of one family");
}

}  // namespace tpudist
