#include "sweep/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"

namespace tpudist {
namespace {

// The number below which a standard normal variable lies with probability `p`, by bisection.
double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

struct SeedScores {
  double sum = 0;
  int runs = 0, scored = 0;
};

}  // namespace

std::optional<double> score_of(const RunResult& result, ChoiceScore choice) {
  if (!result.finished || choice == ChoiceScore::none) return std::nullopt;
  return choice == ChoiceScore::valid ? result.valid() : result.out_of_fold();
}

std::vector<VariantSummary> summarise(const std::vector<SweepRun>& runs,
                                      const std::vector<std::optional<RunResult>>& results,
                                      ChoiceScore choice) {
  std::map<int, VariantSummary> summaries;
  std::map<int, std::map<std::optional<std::uint64_t>, SeedScores>> seeds;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    VariantSummary& summary = summaries[runs[i].variant];
    summary.variant = runs[i].variant;
    ++summary.runs;
    SeedScores& seed = seeds[runs[i].variant][runs[i].seed];
    ++seed.runs;
    if (!results[i]) continue;
    ++(results[i]->finished ? summary.finished : summary.failed);
    const std::optional<double> score = score_of(*results[i], choice);
    if (!score) continue;
    seed.sum += *score;
    ++seed.scored;
  }
  std::vector<VariantSummary> list;
  for (auto& [variant, summary] : summaries) {
    std::vector<double> means;
    for (const auto& [seed, scores] : seeds[variant]) {
      if (scores.scored == scores.runs) means.push_back(scores.sum / scores.runs);
    }
    summary.seeds = static_cast<int>(means.size());
    summary.complete = summary.finished == summary.runs && means.size() == seeds[variant].size();
    const double n = static_cast<double>(means.size());
    if (n > 0) {
      double sum = 0;
      for (double mean : means) sum += mean;
      summary.mean = sum / n;
    }
    if (n > 1) {
      double squares = 0;
      for (double mean : means) squares += (mean - *summary.mean) * (mean - *summary.mean);
      summary.deviation = std::sqrt(squares / (n - 1));
    }
    list.push_back(summary);
  }
  return list;
}

std::vector<int> chosen_variants(const SweepRecord& record, const std::vector<SweepRun>& runs,
                                 const std::vector<std::optional<RunResult>>& results, int keep) {
  std::vector<int> chosen;
  const std::vector<VariantSummary> all = summarise(runs, results, record.choice);
  for (std::size_t experiment = 0; experiment < record.experiments.size(); ++experiment) {
    std::vector<VariantSummary> candidates;
    for (const VariantSummary& summary : all) {
      const auto variant = static_cast<std::size_t>(summary.variant);
      if (record.variant_experiment[variant] == static_cast<int>(experiment)) {
        candidates.push_back(summary);
      }
    }
    const std::size_t wanted = keep == 0
                                   ? 1
                                   : (candidates.size() + static_cast<std::size_t>(keep) - 1) /
                                         static_cast<std::size_t>(keep);
    std::ranges::stable_sort(candidates, [&](const VariantSummary& a, const VariantSummary& b) {
      if (a.complete != b.complete) return a.complete;
      if (a.mean.has_value() != b.mean.has_value()) return a.mean.has_value();
      return a.mean && *a.mean > *b.mean;
    });
    if (candidates.empty() || !candidates.front().mean) {
      throw Error(ErrorKind::failed,
                  fmt::format("no run of {} has a score to choose by; look at `tpudist sweep "
                              "status`, and see that its runs score what `choose.by` names",
                              record.experiments[experiment]));
    }
    for (std::size_t i = 0; i < std::min(wanted, candidates.size()); ++i) {
      if (candidates[i].mean) chosen.push_back(candidates[i].variant);
    }
  }
  return chosen;
}

double expected_optimism(int variants, double deviation) {
  if (variants < 2) return 0;
  return deviation * normal_quantile((variants - 0.375) / (variants + 0.25));
}

}  // namespace tpudist
