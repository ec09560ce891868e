#include "results/report/report_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "results/report/sections.hpp"
#include "results/scores/same_training.hpp"
#include "results/scores/score_table.hpp"
#include "results/scores/system_scores.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostShown = 6;

// Calls `make`. An error of reading or comparing becomes a note of the variant.
void try_to(ReportedVariant& variant, const std::function<void()>& make) {
  try {
    make();
  } catch (const Error& error) {
    variant.notes.push_back(error.what());
  }
}

void fill(ReportedVariant& variant, bool ceilings) {
  variant.metric =
      primary_metric(variant.collection).name == "tile_score" ? "tile score" : "Kendall tau";
  try_to(variant, [&] { variant.members = score_matrix(variant.runs, MatrixRows::members); });
  try_to(variant,
         [&] { variant.out_of_fold = score_matrix(variant.runs, MatrixRows::out_of_fold); });
  try_to(variant, [&] {
    const ScoreMatrix trainings = score_matrix(variant.runs, MatrixRows::trainings);
    const std::string failed =
        trainings.failed_members > 0 ? trainings.failed_text() : variant.out_of_fold.failed_text();
    if (!failed.empty()) variant.notes.push_back(about(variant, failed) + ".");
    variant.valid = trainings;
    for (const std::string& note : shared_orders(variant.runs, trainings))
      variant.notes.push_back(about(variant, note) + ".");
    if (trainings.rows.size() == 1)
      variant.members = members_of(std::move(variant.members), trainings.rows.front());
    variant.together = score_matrix(variant.runs, MatrixRows::together);
  });
  // A table with fewer trainings cannot be compared with the mean.
  if (variant.together.run_count() != variant.valid.run_count()) variant.together = {};
  try_to(variant, [&] { variant.rankings = rank_variant(variant.runs, ceilings); });
}

std::string title_of(const ReportedVariant& variant, bool several_variants,
                     bool several_collections) {
  const std::string& label = variant.runs.front().variant;
  if (several_variants && several_collections) return label + " on " + variant.collection;
  if (several_collections) return variant.collection;
  return several_variants ? label : "";
}

std::string place_of(const RunRecord& run) {
  return fmt::format("{} ({})", run.label, run.path.string());
}

// Drops runs that repeat the training of an earlier run of the same variant, and only names
// repeats across variants.
void count_once(ReportInput& input) {
  std::vector<RunRecord>& runs = input.results.runs;
  std::vector<bool> drop(runs.size(), false);
  for (const SameTraining& same : same_trainings(runs)) {
    const RunRecord &first = runs[same.first], &second = runs[same.second];
    const bool one_variant =
        first.variant == second.variant && first.collection == second.collection;
    input.notes.push_back(fmt::format(
        "{} is the same training as {}: {}. {}", place_of(second), place_of(first), same.why,
        one_variant ? "It counts once."
                    : "They stand for two variants: what differs between those had no effect."));
    drop[same.second] = one_variant;
  }
  std::size_t r = 0;
  const std::size_t before = runs.size();
  std::erase_if(runs, [&](const RunRecord&) { return drop[r++]; });
  if (runs.size() == before || input.results.sweep) return;
  input.results.title = runs.size() == 1 ? runs.front().name : fmt::format("{} runs", runs.size());
}

// The score by which many variants are ordered; below all scores if there is none.
double score_of(const ReportedVariant& variant) {
  const RunScoreTable& scores = variant.valid.graphs.empty() ? variant.out_of_fold : variant.valid;
  return scores.graphs.empty() ? -2 : mean_score(scores);
}

}  // namespace

std::size_t ReportInput::shown() const {
  return std::min(variants.size(), kMostShown);
}

ReportInput report_input(ResultSet results, bool ceilings) {
  ReportInput input;
  input.results = std::move(results);
  count_once(input);
  if (std::string rules = several_rules_text(input.results.runs); !rules.empty())
    input.notes.push_back(std::move(rules) + ".");
  if (std::string drawn = drawn_nodes_text(input.results.runs); !drawn.empty())
    input.notes.push_back("G" + drawn.substr(1) + ".");
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  std::map<std::string, int> labels, collections;
  for (const RunRecord& run : input.results.runs) {
    const auto [at, fresh] =
        places.try_emplace({run.variant, run.collection}, input.variants.size());
    if (fresh) {
      input.variants.emplace_back();
      input.variants.back().collection = run.collection;
      ++labels[run.variant];
      if (++collections[run.collection] == 1) input.collections.push_back(run.collection);
    }
    input.variants[at->second].runs.push_back(run);
  }
  for (ReportedVariant& variant : input.variants) {
    variant.title = title_of(variant, labels.size() > 1, collections.size() > 1);
    fill(variant, ceilings);
  }
  // Only the best fit into charts.
  if (input.variants.size() > kMostShown && collections.size() == 1)
    std::ranges::stable_sort(input.variants, std::greater(), score_of);
  for (std::size_t g = 0; g < input.variants.size(); ++g) {
    input.variants[g].file_end = input.several() ? fmt::format("-{}", g + 1) : "";
    input.variants[g].colour = g < kMostShown ? static_cast<int>(g) + 1 : 0;
  }
  return input;
}

}  // namespace tpudist
