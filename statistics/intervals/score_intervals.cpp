#include "statistics/intervals/score_intervals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/family_variance.hpp"
#include "statistics/intervals/run_variance.hpp"

namespace tpudist {
namespace {

std::string line(std::string_view question, std::string_view answer) {
  return fmt::format("{:<32}  {}", question, answer);
}

std::string count(int number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

constexpr std::string_view kTheseGraphs = "these graphs, if trained again",
                           kOtherFamilies = "other families, if trained again",
                           kThisModel = "other families, this model only",
                           kMembers = "other members of this training";

}  // namespace

std::optional<Interval> run_interval(const RunScoreTable& scores, double level) {
  scores.check();
  if (scores.run_count() < 2) return std::nullopt;
  return mean_interval(run_means(scores), level, scores.reach());
}

std::optional<FamilyInterval> family_interval(std::span<const RunScoreTable> collections,
                                              double level) {
  FamilyInterval result;
  result.collections = static_cast<int>(collections.size());
  result.runs = std::ranges::min(collections, {}, &RunScoreTable::run_count).run_count();
  const auto count = static_cast<double>(collections.size());
  double mean = 0;
  Reach reach{1, 1};
  std::set<std::string> families;
  std::vector<VarianceEstimate> runs;
  std::vector<GraphValues> means;
  for (RunScoreTable own : collections) {
    own.check();
    if (own.family_count() < 2) return std::nullopt;
    FamilyClusters clusters = family_clusters(own.families);
    own.families = std::move(clusters.of);
    if (!clusters.note.empty()) result.notes.insert(std::move(clusters.note));
    means.push_back({own.families, graph_means(own)});
    result.graphs += own.graph_count();
    families.insert(own.families.begin(), own.families.end());
    mean += mean_score(own) / count;
    reach.low = std::min(reach.low, own.lowest);
    if (own.run_count() < 2) continue;
    for (VarianceEstimate term : run_variance(own).missing()) {
      term.variance /= count * count;
      result.run_variance += term.variance;
      runs.push_back(term);
    }
  }
  result.families = static_cast<int>(families.size());
  result.family = family_variance(means);
  const bool as_many = std::ranges::all_of(
      collections, [&](const RunScoreTable& own) { return own.run_count() == result.runs; });
  result.interval = t_interval(
      mean, howe(with_runs(result.family, std::move(runs), as_many), level), level, reach);
  return result;
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
  return "one training does not show how others would score; " + more_trainings_text();
}

std::string more_trainings_text() {
  return "decide how many more you need, then train them with other seeds (seed.init, seed.order)";
}

std::string rare_line(int number, std::string_view of, std::string_view event) {
  return fmt::format("{} {} without a {} leave a {} rate of up to {:.0f} % possible (95 %)", number,
                     of, event, event, 100 * rate_bound(0, number));
}

std::string family_text(const std::optional<FamilyInterval>& found) {
  if (!found)
    return "  " + line("other families", "not enough: all graphs are of one family") + "\n";
  std::string text = fmt::format(
      "  {}\n  {}\n"
      "  if some families fail or score far lower, the interval above covers the truth in "
      "63 to 90 % of cases only\n",
      family_line(*found), rare_line(found->families, "families", "failure"));
  for (const std::string& note : found->notes) text += "  " + note + "\n";
  return text;
}

std::string alike_line(const std::string& what) {
  return what + " are alike, so their spread is not known";
}

std::string no_run_line(const std::string& reason) {
  return line(kTheseGraphs, "not enough: " + reason);
}

}  // namespace tpudist
