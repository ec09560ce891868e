#include "results/comparison_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "core/text.hpp"
#include "statistics/interval_text.hpp"

namespace tpudist {
namespace {

std::string_view title_of(JudgedGraphs judged) {
  return judged == JudgedGraphs::valid ? "valid split" : "training graphs, out of fold";
}

std::string units_text(const SystemScores& system) {
  const int count = system.scores.run_count();
  const std::string_view unit = system.unit == MatrixRows::members ? "member" : "run";
  return fmt::format("{} {}{}{}", count, unit, count == 1 ? "" : "s",
                     system.unit == MatrixRows::members ? " one by one" : "");
}

std::string left_out_lines(const SystemScores& system) {
  std::string text;
  for (const std::string& line : system.left_out) text += "left out  " + line + "\n";
  return text;
}

std::string heading(const SystemScores& system) {
  return fmt::format("{}, {}, {}: {} graphs of {} families\n", system.collection, system.metric,
                     title_of(system.judged), system.scores.graph_count(),
                     system.scores.family_count());
}

std::string line(std::string_view what, std::string_view text) {
  return fmt::format("  {:<24}  {}\n", what, text);
}

std::string ends(const Interval& interval, std::string_view source) {
  return fmt::format("{:+.4f} to {:+.4f} (t({:.3g}), {})", interval.low, interval.high,
                     interval.degrees, source);
}

// p, or why there is none. `what` is flipped or exchanged: "4 families".
std::string p_text(const PermutationTest& test, std::string_view what) {
  if (!test.can_tell())
    return fmt::format("{} cannot reach {} (smallest {:.3g})", what, kSignificance,
                       test.smallest_p);
  return fmt::format("p {:.3g} ({} of {:.6g})", test.p, test.exact ? "exact, all" : "100,000 drawn",
                     test.labellings);
}

std::string runs_text(const std::optional<int>& runs, double difference) {
  if (!runs)
    return fmt::format("no number of runs finds a difference of {:.4f}", std::abs(difference));
  return fmt::format("{} runs of each find a difference of {:.4f}", *runs, std::abs(difference));
}

std::string these_graphs_text(const Comparison& found) {
  std::string text = "these graphs, other runs\n";
  const auto& own = found.these_graphs;
  if (!own.interval)
    return text + line("95 % interval", "not enough: both sides need two runs; train more seeds");
  text += line("95 % interval", ends(*own.interval, "Welch over complete runs"));
  text += line("exchanging labels",
               p_text(own.test, fmt::format("{} and {} runs", found.runs_a, found.runs_b)) +
                   (found.out_of_fold ? ", within folds" : ""));
  return text + line("power of 80 %", runs_text(own.runs_needed, found.difference));
}

std::string other_families_text(const Comparison& found) {
  if (!found.other_families)
    return "other families\n" + line("95 % interval", "not enough: all graphs are of one family");
  const auto& own = *found.other_families;
  const bool one_run = own.interval.runs == 1;
  std::string text = one_run ? "other families, these models only where a side has one run\n"
                             : "other families, other runs\n";
  text += line(
      "95 % interval",
      ends(own.interval.interval, fmt::format("CR2 over {} families{}", found.families,
                                              own.interval.run_variance > 0 ? ", and runs" : "")));
  text += line("t test", fmt::format("p {:.3g}", own.p));
  text +=
      line("these trained models", p_text(own.signs, fmt::format("{} families", found.families)) +
                                       (own.signs.can_tell() ? ", signs by family" : ""));
  text += line("power of 80 %", runs_text(own.runs_needed, found.difference));
  text += line(
      "with any number of runs",
      own.detectable > 0
          ? fmt::format("differences below {:.4f} cannot be shown on these graphs", own.detectable)
          : "graphs differ no more than runs explain: more runs show smaller differences");
  text += line("on as many new families",
               fmt::format("{} wins again with a chance of {:.0f} %; expected regret {:.4f}",
                           found.difference >= 0 ? "A" : "B", 100 * own.shake_up.chance,
                           own.shake_up.regret));
  return text + "  " + rare_failure_line(found.families) + "\n";
}

}  // namespace

std::string system_text(const SystemScores& system) {
  if (system.labels.empty())
    return fmt::format("{}: no scores\n", title_of(system.judged)) + left_out_lines(system);
  std::string text = heading(system);
  const auto runs = run_interval(system.scores);
  text += "  " +
          (runs ? run_line(*runs, units_text(system)) : no_run_line("one run has no spread")) +
          "\n  ";
  const auto families = family_interval({&system.scores, 1});
  text += families ? family_line(*families) + "\n  " + rare_failure_line(families->families)
                   : no_family_line();
  return text + "\n" + left_out_lines(system);
}

std::string comparison_text(const SystemPair& pair, const Comparison& found) {
  std::string text = heading(pair.a);
  text += fmt::format("  A      {:.4f}  {}: {}\n", found.a, units_text(pair.a),
                      join(pair.a.labels, ", "));
  text += fmt::format("  B      {:.4f}  {}: {}\n", found.b, units_text(pair.b),
                      join(pair.b.labels, ", "));
  text += fmt::format("  A - B  {:+.4f}\n\n", found.difference);
  text += these_graphs_text(found) + "\n" + other_families_text(found);
  return text + left_out_lines(pair.a) + left_out_lines(pair.b);
}

}  // namespace tpudist
