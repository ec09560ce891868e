#include "launch/sweep/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/means.hpp"

namespace tpudist {
namespace {

// All runs of one seed.
struct Training {
  std::vector<RunResult::Member> members;
  int folds = 0;
  bool finished = true;
};

// Number of graphs per member, the mean; out of fold the number of all folds together.
double scored_graphs(const Training& training, ChoiceScore choice) {
  double sum = 0;
  int members = 0;
  std::map<int, int> by_fold;
  for (const RunResult::Member& member : training.members) {
    if (member.failed) continue;
    ++members;
    sum += std::max(member.valid_graphs, 0);
    int& fold = by_fold[training.folds > 0 ? member.number % training.folds : 0];
    fold = std::max(fold, member.out_of_fold_graphs);
  }
  if (choice == ChoiceScore::valid) return members > 0 ? sum / members : 0;
  sum = 0;
  for (const auto& [fold, graphs] : by_fold) sum += graphs;
  return sum;
}

std::optional<double> score_of(const Training& training, ChoiceScore choice) {
  if (!training.finished || choice == ChoiceScore::none) return std::nullopt;
  if (choice == ChoiceScore::out_of_fold) {
    std::set<int> folds, scored;
    for (const RunResult::Member& member : training.members) {
      const int fold = training.folds > 0 ? member.number % training.folds : 0;
      folds.insert(fold);
      if (!member.failed) scored.insert(fold);
    }
    if (scored != folds) return std::nullopt;  // a fold has no scored graphs
  }
  return mean_of_members(training.members, choice == ChoiceScore::valid);
}

}  // namespace

std::vector<VariantSummary> summarise(const std::vector<SweepRun>& runs,
                                      const std::vector<std::optional<RunResult>>& results,
                                      ChoiceScore choice) {
  std::map<int, VariantSummary> summaries;
  std::map<int, std::map<std::optional<std::uint64_t>, Training>> trainings;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    VariantSummary& summary = summaries[runs[i].variant];
    summary.variant = runs[i].variant;
    ++summary.runs;
    Training& training = trainings[runs[i].variant][runs[i].seed];
    training.folds = runs[i].folds;
    training.finished = training.finished && results[i] && results[i]->finished;
    if (!results[i]) continue;
    ++(results[i]->finished ? summary.finished : summary.failed);
    if (results[i]->finished)
      summary.failed_members +=
          static_cast<int>(std::ranges::count_if(results[i]->members, &RunResult::Member::failed));
    std::ranges::copy(results[i]->members, std::back_inserter(training.members));
  }
  std::vector<VariantSummary> list;
  for (auto& [variant, summary] : summaries) {
    std::vector<double> means;
    for (const auto& [seed, training] : trainings[variant]) {
      const std::optional<double> score = score_of(training, choice);
      if (!score) continue;
      const double graphs = scored_graphs(training, choice);
      summary.graphs = means.empty() ? graphs : std::min(summary.graphs, graphs);
      means.push_back(*score);
    }
    summary.seeds = static_cast<int>(means.size());
    summary.complete = summary.finished == summary.runs && summary.failed_members == 0 &&
                       means.size() == trainings[variant].size();
    if (!means.empty()) summary.mean = mean(means);
    if (means.size() > 1)
      summary.deviation =
          std::sqrt(squares_around(means, *summary.mean) / (static_cast<double>(means.size()) - 1));
    list.push_back(summary);
  }
  return list;
}

double most_graphs(std::span<const VariantSummary> summaries) {
  double most = 0;
  for (const VariantSummary& summary : summaries) {
    if (summary.mean && summary.graphs == 0) return 0;
    most = std::max(most, summary.graphs);
  }
  return most;
}

std::vector<int> chosen_variants(const SweepRecord& record, const std::vector<SweepRun>& runs,
                                 const std::vector<std::optional<RunResult>>& results, int keep) {
  std::vector<int> chosen;
  const std::vector<VariantSummary> all = summarise(runs, results, record.choice);
  for (std::size_t experiment = 0; experiment < record.experiments.size(); ++experiment) {
    std::vector<VariantSummary> candidates;
    for (const VariantSummary& summary : all) {
      const auto variant = static_cast<std::size_t>(summary.variant);
      if (record.variant_experiment[variant] != static_cast<int>(experiment)) continue;
      candidates.push_back(summary);
      const auto first = static_cast<std::size_t>(candidates.front().variant);
      if (record.variant_group[variant] != record.variant_group[first]) {
        throw ConfigError(fmt::format(
            "{} and {} are scored on different graphs: nothing can be chosen between them",
            record.labels[first], record.labels[variant]));
      }
    }
    const double most = most_graphs(candidates);
    for (VariantSummary& candidate : candidates)
      candidate.complete = candidate.complete && (most == 0 || candidate.graphs == most);
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
    for (std::size_t i = 0; i < std::min(wanted, candidates.size()); ++i)
      if (candidates[i].mean) chosen.push_back(candidates[i].variant);
  }
  return chosen;
}

}  // namespace tpudist
