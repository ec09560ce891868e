#include "results/scores/comparison_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/numbers.hpp"
#include "core/text.hpp"
#include "results/scores/table_intervals.hpp"
#include "statistics/intervals/interval.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {
namespace {

std::string_view title_of(EvaluatedOn judged) {
  return judged == EvaluatedOn::valid ? "valid split" : "training graphs, out of fold";
}

// "mean of members, 3 trainings of 5 members"
std::string score_text(const SystemScores& system) {
  return fmt::format("{}, {}{}", name_of(system.score),
                     counted(system.scores.run_count(), "training"),
                     system.members > 1 ? fmt::format(" of {} members", system.members) : "");
}

std::vector<std::string> labels_of(const SystemScores& system) {
  std::vector<std::string> labels;
  for (const ScoreMatrix::Row& row : system.scores.rows) labels.push_back(row.label);
  return labels;
}

// At most three labels, and the number of further ones.
std::string labels_text(std::vector<std::string> labels) {
  constexpr std::size_t kShown = 3;
  if (labels.size() <= kShown) return join(labels, ", ");
  const std::size_t more = labels.size() - kShown;
  labels.resize(kShown);
  return fmt::format("{} and {} more", join(labels, ", "), more);
}

std::string left_out_lines(const SystemScores& system) {
  std::string text;
  for (const std::string& line : system.notes) text += "note      " + line + "\n";
  for (const std::string& line : system.scores.left_out) text += "left out  " + line + "\n";
  return text;
}

std::string heading(const SystemScores& system) {
  return fmt::format("{}, {}, {}: {} of {}{}\n", system.scores.collection, system.scores.metric,
                     title_of(system.judged), counted(system.scores.graph_count(), "graph"),
                     counted(system.scores.family_count(), "family"),
                     system.scores.most_rows > 0 ? ", " + rows_text(system.scores.most_rows) : "");
}

std::string line(std::string_view what, std::string_view text) {
  return fmt::format("  {:<24}  {}\n", what, text);
}

// "-0.0123 to +0.0456 (t(4), Welch)", or the reason for none: `what` are alike.
std::string ends(const Interval& interval, std::string_view source, const char* what) {
  if (!interval.is_known()) return "none: " + alike_line(what);
  return fmt::format("{:+.4f} to {:+.4f} (t({:.3g}), {})", interval.low, interval.high,
                     interval.degrees, source);
}

// "95 %"
std::string percent(double level) {
  return fmt::format("{:.4g} %", 100 * level);
}

std::string interval_name(const Comparison& found) {
  return percent(found.level) + " interval";
}

// The answer to `--margin` about recipes; one training on a side cannot answer.
nlohmann::json margin_json(const Comparison& found, const Interval& difference, int runs) {
  if (found.margin == 0) return {};
  return runs > 1 ? judge_margin(difference, found.margin) : "undecided";
}

bool a_leads(const Comparison& found) {
  return found.difference >= 0;
}

// The name of all differences in the text: the better side minus the other.
const char* difference_name(const Comparison& found) {
  return a_leads(found) ? "A - B" : "B - A";
}

// Turns an interval of A - B into one of difference_name.
Interval upwards(const Comparison& found, Interval interval) {
  if (a_leads(found)) return interval;
  return {-interval.value, interval.error, interval.degrees, -interval.high, -interval.low};
}

std::string these_graphs_text(const SystemPair& pair, const Comparison& found) {
  const std::string head = fmt::format(" ({})\n", difference_name(found));
  if (!found.these_graphs) {
    std::string text =
        "these graphs" + head + line(interval_name(found), "not enough: " + one_training_line());
    if (pair.a.members_of_one && pair.b.members_of_one) {
      const Interval members =
          difference_interval(run_means(*pair.a.members_of_one), run_means(*pair.b.members_of_one),
                              found.level, pair.a.scores.reach().of_differences());
      text += "these graphs, other members of these trainings" + head +
              line(interval_name(found),
                   ends(upwards(found, members), "Welch over members", "scores of all members"));
    }
    return text;
  }
  const auto& own = *found.these_graphs;
  std::string text =
      "these graphs, if trained again" + head +
      line(interval_name(found),
           ends(upwards(found, own.interval), "Welch over trainings", "scores of all trainings"));
  if (!own.interval.is_known()) return text;
  text += line("Welch's t test", fmt::format("p {:.3g}", own.p));
  return text + "  A: " + collapse_line(pair.a.scores) + "\n  B: " + collapse_line(pair.b.scores) +
         "\n";
}

std::string other_families_text(const SystemPair& pair, const Comparison& found) {
  if (!found.other_families)
    return "other families\n" +
           line(interval_name(found), "not enough: all graphs are of one family");
  const auto& own = *found.other_families;
  std::string text =
      fmt::format("other families, {} ({})\n",
                  own.interval.runs == 1 ? "these models only where a side has one training"
                                         : "if trained again",
                  difference_name(found));
  text += line(interval_name(found),
               ends(upwards(found, own.interval.interval),
                    fmt::format("CR2 over {}{}", counted(found.families, "family"),
                                own.interval.run_variance > 0 ? ", and runs" : ""),
                    "differences of all families"));
  if (!std::isnan(own.p)) text += line("t test", fmt::format("p {:.3g}", own.p));
  if (own.next.is_known())
    text += line("the next family", ends(upwards(found, own.next), "families' spread", ""));
  if (own.next.value != 0 && !std::isnan(own.shake_up.chance))
    // A tile score is 1 minus a slowdown.
    text += line(
        "", fmt::format(
                "if nothing was known before, {0} leads on {1:.0f} of 100 such families "
                "(on fewer if {0} is the best of many variants); expected regret {2:.4f}{3}",
                own.next.value > 0 ? "A" : "B", std::min(99.0, 100 * own.shake_up.chance),
                own.shake_up.regret, pair.a.scores.metric == "tile_score" ? " of slowdown" : ""));
  if (own.interval.interval.is_known())
    text +=
        "  if A and B differ far more on a few families, the interval covers the truth in "
        "82 to 90 % of cases only\n";
  for (const std::string& note : own.interval.notes) text += "  " + note + "\n";
  return text;
}

// "between 0.0100 worse and 0.0300 better", "0.0100 to 0.0300 better"
std::string between(const Interval& own) {
  if (own.low > 0) return fmt::format("{:.4f} to {:.4f} better", own.low, own.high);
  return fmt::format("between {:.4f} worse and {:.4f} {}", std::abs(own.low), std::abs(own.high),
                     own.high < 0 ? "worse" : "better");
}

std::string on_others(const Comparison& found) {
  if (!found.other_families || !found.other_families->interval.interval.is_known())
    return "nothing is known of other families";
  return fmt::format("on other families {} ({})",
                     between(upwards(found, found.other_families->interval.interval)),
                     percent(found.level));
}

// The answer to `--margin`: "Margin of 0.02: on these graphs A and B differ by less; on other
// families undecided."
std::string margin_text(const Comparison& found) {
  if (found.margin == 0) return {};
  const auto answer = [&](const Interval* interval) -> std::string {
    const std::string judged = interval ? judge_margin(*interval, found.margin) : "undecided";
    if (judged == "equivalent") return "A and B differ by less";
    if (judged == "undecided") return judged;
    const char side = judged.front(), other = side == 'A' ? 'B' : 'A';
    const bool not_worse = judged.ends_with("not worse");
    return fmt::format("{} is {} than {} by {}", side, not_worse ? "worse" : "better", other,
                       not_worse ? "less, if at all" : "more");
  };
  const auto& families = found.other_families;
  return fmt::format(
      "Margin of {:.4g}: on these graphs {}; on other families {}.\n", found.margin,
      answer(found.these_graphs ? &found.these_graphs->interval : nullptr),
      answer(families && families->interval.runs > 1 ? &families->interval.interval : nullptr));
}

std::string line_of_needed(std::string_view what, std::string_view unit, const NeededRange& found) {
  const auto text = [](const NeededNumber& number) {
    return number ? fmt::format("{}", *number) : std::string("more than 10,000");
  };
  if (found.number == found.low && found.number == found.high)
    return line(what, fmt::format("{} {}", text(found.number), unit));
  return line(what, fmt::format("{} {} ({} to {}: spreads are known only roughly)",
                                text(found.number), unit, text(found.low), text(found.high)));
}

using Json = nlohmann::json;

Json names_json(const SystemScores& system) {
  return {{"collection", system.scores.collection},
          {"metric", system.scores.metric},
          {"graphs", system.judged == EvaluatedOn::valid ? "valid" : "out_of_fold"},
          {"score_of", name_of(system.score)},
          {"runs", labels_of(system)},
          {"members", system.members},
          {"notes", system.notes},
          {"left_out", system.scores.left_out}};
}

Json other_families_json(const Comparison& found, const Comparison::OtherFamilies& own) {
  return {{"interval", family_interval_json(own.interval)},
          {"p", own.p},
          {"margin", margin_json(found, own.interval.interval, own.interval.runs)},
          {"next_family",
           {{"interval", interval_json(own.next)},
            {"chance", own.shake_up.chance},
            {"expected_regret", own.shake_up.regret}}}};
}

Json these_graphs_json(const Comparison& found, const Comparison::TheseGraphs& own) {
  return {{"interval", interval_json(own.interval)},
          {"p", own.p},
          {"margin", margin_json(found, own.interval, 2)}};
}

// Both intervals of `scores`; columns are trainings.
Json intervals_json(const RunScoreTable& scores, double level) {
  return {{"score", mean_score(scores)},
          {"these_graphs", interval_json(run_interval(scores, level))},
          {"other_families", family_interval_json(family_interval({&scores, 1}, level))}};
}

Json needed_json(const std::optional<NeededRange>& found) {
  const auto number = [](const NeededNumber& value) { return value ? Json(*value) : Json(); };
  if (!found) return {};
  return {{"number", number(found->number)},
          {"low", number(found->low)},
          {"high", number(found->high)}};
}

// Which of two systems is better, by how much and how certain, in one line.
std::string verdict_text(const Comparison& found) {
  const char better = a_leads(found) ? 'A' : 'B', worse = a_leads(found) ? 'B' : 'A';
  const double size = std::abs(found.difference);
  if (!found.these_graphs || !found.these_graphs->interval.is_known())
    return fmt::format(
        "{} scores {:.4f} higher than {} on these graphs; {}, so whether others would is not "
        "known.\n",
        better, size, worse,
        found.these_graphs ? "trainings of each side score alike" : "a side has one training");
  const Interval own = upwards(found, found.these_graphs->interval);
  if (own.low > 0)
    return fmt::format("{} is better on these graphs: {:+.4f} ({:.4f} to {:.4f}); {}.\n", better,
                       size, own.low, own.high, on_others(found));
  return fmt::format("Undecided on these graphs ({}): {} is {}.\n", percent(found.level), better,
                     between(own));
}

}  // namespace

std::string plan_text(const DifferencePlan& plan) {
  std::string text = fmt::format(
      "\nto find a true difference of {:.4f} in 8 of 10 cases, at p < {:.3g} (in brackets: 80 % "
      "interval)\n",
      plan.difference, 1 - plan.level);
  text += plan.runs ? line_of_needed("these graphs", "trainings of each", *plan.runs)
                    : line("these graphs",
                           "not enough: " + (plan.alike_runs ? alike_line("scores of all trainings")
                                                             : one_training_line()));
  if (!plan.families)
    return text +
           line("other families",
                "not enough: " + (plan.alike_families ? alike_line("differences of all families")
                                                      : "all graphs are of one family"));
  text +=
      line_of_needed("other families", "families like these, with these trainings", *plan.families);
  if (plan.families_with_more_runs)
    text += line_of_needed("", "with ten times as many trainings", *plan.families_with_more_runs);
  return text;
}

std::string system_text(const SystemScores& system) {
  if (system.scores.rows.empty())
    return fmt::format("{}: no scores\n", title_of(system.judged)) + left_out_lines(system);
  std::string text = heading(system);
  if (const auto runs = run_interval(system.scores)) {
    text += "  " + run_line(*runs, score_text(system)) + "\n";
    if (system.together)
      text += "  " + run_line(*run_interval(*system.together), "members together") + "\n";
    text += "  " + collapse_line(system.scores) + "\n";
  } else {
    if (system.members_of_one)
      text += "  " + member_line(*run_interval(*system.members_of_one), score_text(system)) + "\n";
    text += "  " + one_training_line() + "\n";
    if (system.together)
      text += fmt::format("  members together: {:.4f}\n", mean_score(*system.together));
  }
  const RunScoreTable& scores = system.scores;
  return text + family_text(family_interval({&scores, 1})) + left_out_lines(system);
}

std::string comparison_text(const SystemPair& pair, const Comparison& found) {
  std::string text = margin_text(found) + verdict_text(found);
  const double looks = kSignificance / found.significance();
  if (found.level != kIntervalLevel)
    text +=
        fmt::format("One of {:.0f} planned looks: each is judged at p < {:.3g} ({} / {:.0f}).\n",
                    looks, found.significance(), kSignificance, looks);
  text += "\n" + heading(pair.a);
  const auto side = [](char name, double score, const SystemScores& system) {
    return fmt::format("  {}      {:.4f}  {}: {}{}\n", name, score, score_text(system),
                       labels_text(labels_of(system)),
                       system.baseline ? " (the baseline of the sweep)" : "");
  };
  text += side('A', found.a, pair.a) + side('B', found.b, pair.b);
  text += fmt::format("  {}  {:+.4f}\n", difference_name(found), std::abs(found.difference));
  if (pair.a.together && pair.b.together)
    text += fmt::format("  members together: A {:.4f}, B {:.4f}\n", mean_score(*pair.a.together),
                        mean_score(*pair.b.together));
  text += "\n" + these_graphs_text(pair, found) + "\n" + other_families_text(pair, found);
  return text + left_out_lines(pair.a) + left_out_lines(pair.b);
}

Json system_json(const SystemScores& system, double level) {
  Json json = names_json(system);
  if (system.scores.rows.empty()) return json;
  json.update(intervals_json(system.scores, level));
  json["members_together"] = system.together ? intervals_json(*system.together, level) : Json();
  json["other_members"] =
      system.members_of_one ? interval_json(run_interval(*system.members_of_one, level)) : Json();
  return json;
}

Json comparison_json(const SystemPair& pair, const Comparison& found) {
  return {
      {"a", system_json(pair.a, found.level)},
      {"b", system_json(pair.b, found.level)},
      {"verdict", verdict_text(found)},
      {"level", found.level},
      {"difference", found.difference},
      {"graphs", found.graphs},
      {"families", found.families},
      {"these_graphs", found.these_graphs ? these_graphs_json(found, *found.these_graphs) : Json()},
      {"other_families",
       found.other_families ? other_families_json(found, *found.other_families) : Json()}};
}

Json plan_json(const DifferencePlan& plan) {
  return {{"difference", plan.difference},
          {"runs", needed_json(plan.runs)},
          {"families", needed_json(plan.families)},
          {"families_with_ten_times_the_runs", needed_json(plan.families_with_more_runs)}};
}

}  // namespace tpudist
