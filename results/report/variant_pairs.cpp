#include "results/report/variant_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "results/scores/system_scores.hpp"
#include "statistics/intervals/comparison.hpp"

namespace tpudist {
namespace {

const RunScoreTable& compared_scores(const ReportedVariant& variant, bool out_of_fold) {
  return out_of_fold ? variant.out_of_fold : variant.valid;
}

// The mean score, below all others if it is undefined.
double rank_of(const RunScoreTable& scores) {
  const double score = mean_score(scores);
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

std::optional<Interval> known(const Interval& interval) {
  return interval.is_known() ? std::optional(interval) : std::nullopt;
}

// Refuses variants that were scored on other data or other rows.
void require_same_data(const ReportInput& input, const VariantComparison& found) {
  std::vector<RunRecord> runs;
  for (const std::size_t v : found.variants) {
    const auto& own = input.variants[v].runs;
    runs.insert(runs.end(), own.begin(), own.end());
  }
  score_matrix(runs, found.out_of_fold ? MatrixRows::out_of_fold : MatrixRows::members);
}

// Adds all pairs, on the graphs for which all variants have scores.
void add_pairs(const ReportInput& input, VariantComparison& found) {
  std::vector<const RunScoreTable*> all;
  for (const std::size_t v : found.variants)
    all.push_back(&compared_scores(input.variants[v], found.out_of_fold));
  const std::set<std::string> common = common_graphs(all);
  if (common.empty()) throw ConfigError("no graph was scored by all variants");
  // The order is that on common graphs: a variant may lack the hardest graphs.
  std::vector<std::pair<std::size_t, RunScoreTable>> own;  // the best first
  for (std::size_t i = 0; i < all.size(); ++i)
    own.emplace_back(found.variants[i], on_graphs(*all[i], common));
  std::ranges::stable_sort(own, std::greater(),
                           [](const auto& variant) { return rank_of(variant.second); });
  found.best = own.front().first;
  std::vector<std::vector<double>> means;  // of variants with several trainings
  std::vector<std::size_t> several;        // indices of these variants
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto& [variant, scores] = own[i];
    if (scores.run_count() > 1) {
      means.push_back(run_means(scores));
      several.push_back(variant);
    }
    for (std::size_t j = i + 1; j < own.size(); ++j) {
      VariantComparison::Pair& pair =
          found.pairs.emplace_back(VariantComparison::Pair{.a = variant, .b = own[j].first});
      pair.difference = mean_score(scores) - mean_score(own[j].second);
      if (const auto families = compare_on_other_families(scores, own[j].second))
        pair.families = known(families->interval.interval);
    }
  }
  if (means.size() < 2) return;
  const AllPairs tested = all_pairs(means, own.front().second.reach().of_differences());
  found.method = tested.test_name();
  for (const AllPairs::Pair& one : tested.pairs) {
    const auto pair = std::ranges::find_if(found.pairs, [&](const VariantComparison::Pair& other) {
      return other.a == several[static_cast<std::size_t>(one.a)] &&
             other.b == several[static_cast<std::size_t>(one.b)];
    });
    pair->trainings = known(one.interval);
    if (pair->trainings) pair->p = one.p;
    pair->alike = !pair->trainings;
  }
}

// Whether `sweep collect` compares out of fold.
bool judged_out_of_fold(const ReportInput& input) {
  if (!input.results.sweep) return false;
  const SweepRecord& sweep = *input.results.sweep;
  for (const Stage& stage : sweep.stages) {
    if (stage.name == input.results.stage && stage.confirms) return false;
  }
  if (sweep.choice != ChoiceScore::none) return sweep.choice == ChoiceScore::out_of_fold;
  return std::ranges::any_of(input.variants, [](const ReportedVariant& variant) {
    return !variant.out_of_fold.graphs.empty();
  });
}

}  // namespace

VariantComparison compare_variants(const ReportInput& input, const std::string& collection) {
  VariantComparison found;
  const auto list = [&](bool out_of_fold) {
    found.out_of_fold = out_of_fold;
    found.variants.clear();
    for (std::size_t v = 0; v < input.variants.size(); ++v) {
      if (input.variants[v].collection == collection &&
          !compared_scores(input.variants[v], out_of_fold).graphs.empty())
        found.variants.push_back(v);
    }
  };
  const bool by_folds = judged_out_of_fold(input);
  list(by_folds);
  if (found.variants.empty()) list(!by_folds);
  if (found.variants.empty()) return found;
  found.best = *std::ranges::max_element(found.variants, {}, [&](std::size_t v) {
    return rank_of(compared_scores(input.variants[v], found.out_of_fold));
  });
  if (found.variants.size() < 2) return found;
  try {
    require_same_data(input, found);
    add_pairs(input, found);
  } catch (const Error& error) {
    found.refusal = error.what();
    found.pairs.clear();
  }
  return found;
}

}  // namespace tpudist
