#include "results/scores/comparison_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/means.hpp"
#include "core/numbers.hpp"
#include "results/scores/system_scores.hpp"
#include "results/scores/table_intervals.hpp"
#include "statistics/intervals/comparison.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {
namespace {

// The results of one variant.
struct Variant {
  std::string label;
  int group = 0;  // SweepRecord::variant_group: variants of different groups are never compared
  SystemScores valid, out_of_fold;
  std::string error;  // why there is nothing
};

std::vector<Variant> variants_of(const ResultSet& results) {
  std::vector<Variant> variants;
  if (!results.sweep) return variants;
  for (std::size_t v = 0; v < results.sweep->labels.size(); ++v) {
    const std::string& label = results.sweep->labels[v];
    std::vector<RunRecord> runs;
    for (const RunRecord& run : results.runs) {
      if (run.variant == label) runs.push_back(run);
    }
    if (runs.empty()) continue;
    Variant& variant = variants.emplace_back();
    variant.label = label;
    const SweepRecord& sweep = *results.sweep;
    variant.group =
        v < sweep.variant_group.size() ? sweep.variant_group[v] : sweep.variant_experiment[v];
    try {
      variant.valid = system_scores(runs, EvaluatedOn::valid);
      variant.out_of_fold = system_scores(runs, EvaluatedOn::out_of_fold);
    } catch (const Error& error) {
      variant.error = error.what();
    }
  }
  return variants;
}

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) result += "  ";
  }
  return result;
}

// Variants with at least two trainings each, on the graphs that all of them have; the best first.
struct Rivals {
  EvaluatedOn judged = EvaluatedOn::valid;
  std::vector<std::string> labels;
  std::vector<std::string> left_out;  // variants without two trainings
  std::size_t graphs = 0;
  std::vector<std::vector<double>> run_means;
  AllPairs found;
};

const SystemScores& scores_of(const Variant& variant, EvaluatedOn judged) {
  return judged == EvaluatedOn::valid ? variant.valid : variant.out_of_fold;
}

Rivals rivals_among(const std::vector<const Variant*>& group, EvaluatedOn judged) {
  Rivals rivals;
  rivals.judged = judged;
  std::vector<std::string> labels;
  std::vector<const RunScoreTable*> several;
  for (const Variant* variant : group) {
    const RunScoreTable& own = scores_of(*variant, judged).scores;
    if (!variant->error.empty() || own.run_count() < 2) {
      rivals.left_out.push_back(variant->label);
      continue;
    }
    labels.push_back(variant->label);
    several.push_back(&own);
  }
  const std::set<std::string> common = common_graphs(several);
  if (several.size() < 2 || common.empty()) return rivals;
  rivals.graphs = common.size();
  std::vector<std::pair<std::string, std::vector<double>>> means;
  for (std::size_t v = 0; v < several.size(); ++v)
    means.emplace_back(labels[v], run_means(on_graphs(*several[v], common)));
  std::ranges::stable_sort(means, std::greater(), [](const auto& own) { return mean(own.second); });
  for (auto& [label, own] : means) {
    rivals.labels.push_back(label);
    rivals.run_means.push_back(std::move(own));
  }
  rivals.found = all_pairs(rivals.run_means, several.front()->reach().of_differences());
  return rivals;
}

std::vector<Rivals> rivals_of(const std::vector<Variant>& variants) {
  std::vector<Rivals> list;
  for (const EvaluatedOn judged : {EvaluatedOn::valid, EvaluatedOn::out_of_fold}) {
    std::map<int, std::vector<const Variant*>> groups;
    for (const Variant& variant : variants) groups[variant.group].push_back(&variant);
    for (const auto& [number, group] : groups) {
      Rivals rivals = rivals_among(group, judged);
      if (!rivals.labels.empty()) list.push_back(std::move(rivals));
    }
  }
  return list;
}

std::string pair_text(const Rivals& rivals, const AllPairs::Pair& pair) {
  const std::string start =
      fmt::format("{} - {}: {:+.4f} ", rivals.labels[static_cast<std::size_t>(pair.a)],
                  rivals.labels[static_cast<std::size_t>(pair.b)], pair.interval.value);
  if (!pair.interval.is_known())
    return start + fmt::format("(no interval: {})", alike_line("scores of all trainings"));
  return start + fmt::format("({:+.4f} to {:+.4f}), p {:.3g}", pair.interval.low,
                             pair.interval.high, pair.p);
}

// The best against every other, and how many pairs differ at all.
std::string rivals_text(const Rivals& rivals) {
  const AllPairs& found = rivals.found;
  const auto differs = [](const AllPairs::Pair& pair) { return pair.p < kSignificance; };
  const auto differing = std::ranges::count_if(found.pairs, differs);
  const bool one_pair = found.pairs.size() == 1;
  std::string text = fmt::format(
      "{}: {} between {} on {} if trained again\n",
      rivals.judged == EvaluatedOn::valid ? "valid split" : "out of fold",
      differing == 0 ? "no significant difference" : counted(differing, "significant difference"),
      counted(std::ssize(rivals.labels), "variant"),
      rivals.graphs == 1 ? "this graph" : fmt::format("these {} graphs", rivals.graphs));
  text += fmt::format(
      "  {}{} decides{}; differences are of means of members, the better variant minus the other\n",
      found.test_name(),
      one_pair ? "" : fmt::format(" for all {} pairs at once", found.pairs.size()),
      one_pair ? ", as in `tpudist compare`" : "");
  const bool clear = std::ranges::all_of(
      found.pairs, [&](const AllPairs::Pair& pair) { return pair.a != 0 || differs(pair); });
  text += clear
              ? fmt::format("  {} is better than {}\n", rivals.labels.front(),
                            rivals.left_out.empty() ? "every other variant" : "the others of these")
              : fmt::format("  no variant is shown to be the best; {} scores highest of these\n",
                            rivals.labels.front());
  for (const std::string& label : rivals.left_out)
    text += fmt::format("  not compared: {}, which has no two complete trainings\n", label);
  for (const AllPairs::Pair& pair : found.pairs) {
    if (pair.a == 0) text += "  " + pair_text(rivals, pair) + "\n";
  }
  if (found.shrunk.empty()) return text;
  const auto [least, most] = std::ranges::minmax(found.shrunk);
  if (most - least < kScoreRounding)
    return text +
           fmt::format(
               "  best guess: these trainings do not separate the variants, {:.4f} of each\n",
               least);
  text +=
      "  what training again would reach on average (shrunk towards the mean of all variants):\n";
  for (std::size_t v = 0; v < rivals.labels.size(); ++v)
    text += fmt::format("    {:.4f}, seen {:.4f}  {}\n", found.shrunk[v], mean(rivals.run_means[v]),
                        rivals.labels[v]);
  return text;
}

nlohmann::json rivals_json(const Rivals& rivals) {
  nlohmann::json pairs = nlohmann::json::array();
  for (const AllPairs::Pair& pair : rivals.found.pairs)
    pairs.push_back({{"a", rivals.labels[static_cast<std::size_t>(pair.a)]},
                     {"b", rivals.labels[static_cast<std::size_t>(pair.b)]},
                     {"interval", interval_json(pair.interval)},
                     {"p", pair.p}});
  return {{"graphs", rivals.judged == EvaluatedOn::valid ? "valid" : "out_of_fold"},
          {"method", rivals.found.one_spread ? "tukey" : "holm"},
          {"variants", rivals.labels},
          {"not_compared", rivals.left_out},
          {"pairs", pairs},
          {"shrunk", rivals.found.shrunk}};
}

}  // namespace

std::string sweep_interval_text(const ResultSet& results) {
  std::string text;
  const std::vector<Variant> variants = variants_of(results);
  for (const Rivals& rivals : rivals_of(variants)) text += rivals_text(rivals) + "\n";
  for (const Variant& variant : variants) {
    text += variant.label + ", 95 % intervals\n";
    if (!variant.error.empty()) {
      text += "  not told: " + variant.error + "\n";
      continue;
    }
    const bool valid = !variant.valid.scores.rows.empty(),
               folds = !variant.out_of_fold.scores.rows.empty();
    if (valid || !folds) text += indented(system_text(variant.valid));
    if (folds) text += indented(system_text(variant.out_of_fold));
  }
  const std::string drawn = drawn_nodes_text(results.runs);
  if (!drawn.empty()) text += "note: " + drawn + "\n";
  return text;
}

nlohmann::json sweep_interval_json(const ResultSet& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const Variant& variant : variants_of(results)) {
    nlohmann::json one = {{"variant", variant.label}};
    if (variant.error.empty()) {
      one["valid"] = system_json(variant.valid);
      one["out_of_fold"] = system_json(variant.out_of_fold);
    } else {
      one["error"] = variant.error;
    }
    list.push_back(std::move(one));
  }
  return list;
}

nlohmann::json sweep_pairs_json(const ResultSet& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const Rivals& rivals : rivals_of(variants_of(results))) list.push_back(rivals_json(rivals));
  return list;
}

}  // namespace tpudist
