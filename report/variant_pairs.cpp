#include "report/variant_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "results/system_scores.hpp"
#include "statistics/comparison.hpp"
#include "statistics/distributions.hpp"

namespace tpudist {
namespace {

const RunScores& scores_of(const ReportedVariant& variant, bool out_of_fold) {
  return out_of_fold ? variant.held_out : variant.valid;
}

// The graphs of `scores` that `other` has, too, in their order.
RunScores common_graphs(const RunScores& scores, const RunScores& other) {
  RunScores common;
  for (std::size_t g = 0; g < scores.graphs.size(); ++g) {
    if (std::ranges::find(other.graphs, scores.graphs[g]) == other.graphs.end()) continue;
    common.graphs.push_back(scores.graphs[g]);
    common.families.push_back(scores.families[g]);
    if (!scores.folds.empty()) common.folds.push_back(scores.folds[g]);
    common.scores.push_back(scores.scores[g]);
  }
  return common;
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

// Holm (Scandinavian Journal of Statistics 1979): the k-th smallest of m times m - k + 1, rising.
void adjust(std::vector<VariantPair>& pairs) {
  std::vector<VariantPair*> tested;
  for (VariantPair& pair : pairs) {
    if (pair.p) tested.push_back(&pair);
  }
  std::ranges::stable_sort(tested, {}, [](const VariantPair* pair) { return *pair->p; });
  double least = 0;
  for (std::size_t k = 0; k < tested.size(); ++k) {
    const double adjusted = *tested[k]->p * static_cast<double>(tested.size() - k);
    least = std::min(1.0, std::max(least, adjusted));
    tested[k]->p = least;
  }
}

VariantPair pair_of(const ReportInput& input, std::size_t a, std::size_t b, bool out_of_fold,
                    double level) {
  const RunScores &all_a = scores_of(input.variants[a], out_of_fold),
                  &all_b = scores_of(input.variants[b], out_of_fold);
  const RunScores own_a = common_graphs(all_a, all_b), own_b = common_graphs(all_b, all_a);
  VariantPair pair{.a = a, .b = b};
  if (own_a.graphs.empty()) {
    pair.difference = std::nan("");
    return pair;
  }
  const Comparison found = compare(own_a, own_b);
  pair.difference = found.difference;
  if (own_a.run_count() > 1 && own_b.run_count() > 1) {
    pair.trainings = difference_interval(run_means(own_a), run_means(own_b), level);
    if (pair.trainings->error > 0) {
      pair.p = two_sided_p(pair.trainings->value / pair.trainings->error, pair.trainings->degrees);
    } else {
      pair.p = pair.difference == 0 ? 1 : 0;
    }
  }
  if (found.other_families) pair.families = found.other_families->interval.interval;
  return pair;
}

// What the table of `sweep collect` goes by.
bool judged_out_of_fold(const ReportInput& input) {
  if (!input.results.sweep) return false;
  const SweepRecord& sweep = *input.results.sweep;
  for (const Stage& stage : sweep.stages) {
    if (stage.name == input.results.stage && stage.confirms) return false;
  }
  if (sweep.choice != ChoiceScore::none) return sweep.choice == ChoiceScore::out_of_fold;
  return std::ranges::any_of(input.variants, [](const ReportedVariant& variant) {
    return !variant.held_out.graphs.empty();
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
          !scores_of(input.variants[v], out_of_fold).graphs.empty())
        found.variants.push_back(v);
    }
  };
  const bool by_folds = judged_out_of_fold(input);
  list(by_folds);
  if (found.variants.empty()) list(!by_folds);
  if (found.variants.empty()) return found;
  found.best = *std::ranges::max_element(found.variants, {}, [&](std::size_t v) {
    return mean_score(scores_of(input.variants[v], found.out_of_fold));
  });
  if (found.variants.size() < 2) return found;
  try {
    require_same_data(input, found);
    const auto count = static_cast<double>(found.variants.size());
    const double level = 1 - (1 - kIntervalLevel) / (count * (count - 1) / 2);
    for (std::size_t i = 0; i < found.variants.size(); ++i) {
      for (std::size_t j = i + 1; j < found.variants.size(); ++j) {
        found.pairs.push_back(
            pair_of(input, found.variants[i], found.variants[j], found.out_of_fold, level));
      }
    }
    adjust(found.pairs);
  } catch (const Error& error) {
    found.refusal = error.what();
    found.pairs.clear();
  }
  return found;
}

}  // namespace tpudist
