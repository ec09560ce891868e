#include "results/scores/system_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <ranges>
#include <set>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "results/scores/member_columns.hpp"
#include "results/scores/result_set.hpp"
#include "results/scores/same_training.hpp"

namespace tpudist {
namespace {

// Whether the hashes of both runs are known and differ.
bool other_hash(const RunRecord& a, const RunRecord& b) {
  return a.hashes && b.hashes &&
         (a.hashes->variant_hash != b.hashes->variant_hash ||
          other_first_weights(a.hashes->init_hash, b.hashes->init_hash));
}

// Runs of a system are trainings of one variant, each given once.
void require_one_variant(std::span<const RunRecord> runs) {
  for (const RunRecord& run : runs) {
    const RunRecord& first = runs.front();
    const std::vector<std::string> changed = different_settings(first, run);
    if (!other_hash(first, run) && changed.empty()) continue;
    throw ConfigError(
        fmt::format("{} and {} are runs of different settings{}; name one side's runs before "
                    "--with and the other's after it",
                    first.path.string(), run.path.string(),
                    changed.empty() ? "" : fmt::format(" ({})", changed.front())));
  }
  for (const SameTraining& same : same_trainings(runs))
    throw ConfigError(
        fmt::format("{} and {} are one and the same training ({}); give runs of different seeds",
                    runs[same.first].path.string(), runs[same.second].path.string(), same.why));
}

SystemScores scores_of(std::span<const RunRecord> runs, const ScoreMatrix& matrix,
                       EvaluatedOn judged) {
  SystemScores result;
  result.scores = matrix;
  result.judged = judged;
  for (const ScoreMatrix::Row& row : matrix.rows)
    result.members = std::max(result.members, row.member_count);
  result.baseline = !runs.empty() && runs.front().baseline;
  result.notes = shared_orders(runs, matrix);
  if (std::string failed = matrix.failed_text(); !failed.empty())
    result.notes.push_back(std::move(failed));
  return result;
}

// Keeps only the graphs of `common`, which both sides have.
void keep_common(SystemScores& system, const std::set<std::string>& common) {
  for (const std::string& name : system.scores.graphs | std::views::reverse) {
    if (!common.contains(name))
      system.scores.left_out.push_back(name + ": left out on the other side");
  }
  system.scores.entries.clear();  // of all graphs; nobody needs them here
  static_cast<RunScoreTable&>(system.scores) = on_graphs(system.scores, common);
  for (auto* beside : {&system.together, &system.members_of_one}) {
    if (*beside) *beside = on_graphs(**beside, common);
    if (*beside && (*beside)->graphs != system.scores.graphs) beside->reset();
  }
}

namespace fs = std::filesystem;

// The labels of a sweep's variants that have runs, by number.
using Variants = std::map<std::ptrdiff_t, std::string>;

Variants known_variants(const ResultSet& results) {
  const std::vector<std::string>& labels = results.sweep.value().labels;
  Variants known;
  for (const RunRecord& run : results.runs)
    known[std::ranges::find(labels, run.variant) - labels.begin()] = run.variant;
  return known;
}

[[noreturn]] void refuse_variants(const std::string& folder, const std::string& has,
                                  std::string_view wanted, const Variants& known) {
  std::vector<std::string> names;
  for (const auto& [number, label] : known) names.push_back(fmt::format("{} ({})", number, label));
  throw ConfigError(fmt::format("{} has {}; name {} as {}:NUMBER: {}", folder, has, wanted, folder,
                                join(names, ", ")));
}

// The runs of the variant `wanted` of a sweep; if `wanted` is empty, of the sweep's only variant.
std::vector<RunRecord> variant_runs(ResultSet results, const std::string& folder,
                                    const std::string& wanted) {
  const Variants known = known_variants(results);
  const auto at = std::ranges::find_if(known, [&](const auto& variant) {
    return wanted.empty() ? known.size() == 1
                          : variant.second == wanted || std::to_string(variant.first) == wanted;
  });
  if (at == known.end())
    refuse_variants(folder, wanted.empty() ? "several variants" : "no runs of a variant " + wanted,
                    "one", known);
  std::erase_if(results.runs, [&](const RunRecord& run) { return run.variant != at->second; });
  for (RunRecord& run : results.runs) run.variants = static_cast<int>(results.sweep->labels.size());
  return std::move(results.runs);
}

std::vector<RunRecord> read_input(const std::string& input) {
  const auto [folder, variant] = split_variant(input);
  ResultSet results = read_results({folder});
  if (results.sweep) return variant_runs(std::move(results), folder, variant);
  if (!variant.empty())
    throw ConfigError(fmt::format("{}: {} is no sweep and has no variants", input, folder));
  return std::move(results.runs);
}

}  // namespace

std::pair<std::string, std::string> split_variant(const std::string& input) {
  std::string folder = input, variant;
  // Labels and paths may contain colons.
  for (std::size_t at = input.find(':'); at != std::string::npos && !fs::exists(folder);
       at = input.find(':', at + 1)) {
    if (!fs::is_directory(input.substr(0, at))) continue;
    folder = input.substr(0, at);
    variant = input.substr(at + 1);
  }
  return {folder, variant};
}

std::vector<std::string> two_variants(const std::string& input) {
  const auto [sweep, variant] = split_variant(input);
  const ResultSet results = read_results({sweep});
  const Variants known = known_variants(results);
  const RunRecord& first = results.runs.front();
  if (known.size() == 1 && first.baseline && results.sweep->stages.back().confirms)
    throw ConfigError(fmt::format(
        "{}: the baseline, {}, was chosen, so there is no other variant to compare it with", sweep,
        first.variant));
  if (known.size() != 2 || !variant.empty())
    refuse_variants(sweep, "runs of " + counted(std::ssize(known), "variant"), "two", known);
  return {fmt::format("{}:{}", sweep, known.begin()->first),
          fmt::format("{}:{}", sweep, known.rbegin()->first)};
}

std::vector<std::string> shared_orders(std::span<const RunRecord> runs, const ScoreMatrix& matrix) {
  if (std::ranges::any_of(
          runs, [](const RunRecord& run) { return run.setting("batch.order") == "per_member"; }))
    return {};
  std::map<std::int64_t, const ScoreMatrix::Row*> known;
  for (const ScoreMatrix::Row& row : matrix.rows) {
    const auto [at, fresh] = known.try_emplace(row.order_seed, &row);
    if (!fresh)
      return {
          fmt::format("{} and {} share seed.order {}: they saw the same slates, so that runs "
                      "differ more than these do and the interval for training again is too "
                      "narrow; give each training a seed.order of its own",
                      at->second->label, row.label, row.order_seed)};
  }
  return {};
}

std::string several_rules_text(std::span<const RunRecord> runs) {
  std::map<std::string, std::vector<std::string>> labels;  // by rule
  for (const RunRecord& run : runs) {
    if (run.scores && run.members > 1)
      labels[to_text(run.scores->combination)].push_back(run.label);
  }
  if (labels.size() < 2) return {};
  std::vector<std::string> rules;
  for (const auto& [rule, own] : labels)
    rules.push_back(fmt::format("{} ({})", rule, join(own, ", ")));
  return "members together are of several rules of combination: " + join(rules, ", ");
}

std::string drawn_nodes_text(std::span<const RunRecord> runs) {
  const auto draws = [](const RunRecord& run) {
    const std::string most = run.setting("data.reduce.max_nodes");
    return !most.empty() && most != "0" && run.setting("data.reduce.drawn") != "trained";
  };
  if (std::ranges::none_of(runs, draws)) return {};
  return std::string(kDrawnNodes) +
         "; `tpudist evaluate --draws 10` shows how other draws move them";
}

std::string_view name_of(TrainingScore score) {
  return score == TrainingScore::mean_of_members ? "mean of members" : "members together";
}

SystemScores system_scores(std::span<const RunRecord> runs, EvaluatedOn judged,
                           TrainingScore score) {
  require_one_variant(runs);
  if (judged == EvaluatedOn::out_of_fold) {
    SystemScores result = scores_of(runs, score_matrix(runs, MatrixRows::out_of_fold), judged);
    if (score == TrainingScore::members_together && !result.scores.rows.empty())
      result.notes.push_back(
          "members together are compared on validation graphs only; out of fold this is the mean "
          "of members");
    return result;
  }
  const ScoreMatrix trainings = score_matrix(runs, MatrixRows::trainings);
  SystemScores result = scores_of(runs, trainings, judged);
  if (result.members < 2) return result;
  ScoreMatrix together = score_matrix(runs, MatrixRows::together);
  const bool alike = together.rows.size() == trainings.rows.size();
  if (score == TrainingScore::members_together) {
    if (!alike) {
      const std::string reason =
          together.left_out.empty() ? "no scores" : together.left_out.front();
      throw ConfigError("members cannot be put together: " + reason);
    }
    result.score = score;
    result.scores = std::move(together);
    return result;
  }
  if (alike && together.graphs == trainings.graphs) result.together = std::move(together);
  if (trainings.rows.size() == 1) {
    RunScoreTable members =
        members_of(score_matrix(runs, MatrixRows::members), trainings.rows.front());
    if (members.run_count() > 1) result.members_of_one = std::move(members);
  }
  return result;
}

SystemPair system_pair(std::span<const RunRecord> a, std::span<const RunRecord> b,
                       EvaluatedOn judged, TrainingScore score) {
  std::vector<RunRecord> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  std::vector<std::string> notes, shared;
  for (const SameTraining& same : same_trainings(all)) {
    if (same.first >= a.size() || same.second < a.size()) continue;  // of one side: see below
    const RunRecord &first = all[same.first], &second = all[same.second];
    if (different_settings(first, second).empty())
      shared.push_back(fmt::format("{} stands on both sides (as {}: {}); name it on one",
                                   first.path.string(), second.path.string(), same.why));
    else
      notes.push_back(fmt::format(
          "{} and {} are one training ({}): what their settings differ in had no effect",
          first.path.string(), second.path.string(), same.why));
  }
  if (!shared.empty() && a.size() == b.size() && shared.size() == b.size())
    throw ConfigError("A and B are the same trainings: there is nothing to compare");
  if (!shared.empty()) throw ConfigError(shared.front());
  if (!a.empty() && !b.empty() && a.front().hashes && b.front().hashes &&
      !other_hash(a.front(), b.front()) && different_settings(a.front(), b.front()).empty())
    notes.push_back("A and B have equal settings: what they differ by is chance, not a recipe");
  if (!a.empty() && !b.empty() && a.front().variants > 2 &&
      a.front().path.parent_path() == b.front().path.parent_path())
    notes.push_back(
        fmt::format("two of {} variants of a sweep: p and intervals are of this pair alone; "
                    "`tpudist sweep collect` has those of all pairs at once",
                    a.front().variants));
  score_matrix(all, MatrixRows::trainings);  // refuses other data on one of the sides
  score_matrix(all, MatrixRows::out_of_fold);
  if (std::string rules = several_rules_text(all); !rules.empty())
    notes.push_back(std::move(rules));
  if (std::string drawn = drawn_nodes_text(all); !drawn.empty()) notes.push_back(std::move(drawn));
  SystemPair pair{system_scores(a, judged, score), system_scores(b, judged, score)};
  std::erase_if(pair.b.notes, [&](const std::string& note) {
    return std::ranges::find(pair.a.notes, note) != pair.a.notes.end();
  });
  pair.a.notes.insert(pair.a.notes.end(), notes.begin(), notes.end());
  const std::set<std::string> common =
      common_graphs(std::array<const RunScoreTable*, 2>{&pair.a.scores, &pair.b.scores});
  keep_common(pair.a, common);
  keep_common(pair.b, common);
  return pair;
}

std::vector<RunRecord> read_system(std::span<const std::string> inputs) {
  std::vector<RunRecord> runs;
  for (const std::string& input : inputs) {
    for (RunRecord& run : read_input(input)) {
      // Two runs may have one name; their folders differ.
      if (run.index < 0) run.label = run.path.string();
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

std::string no_end_text(std::span<const RunRecord> runs, const std::string& side) {
  const auto of = [&](RunState state) {
    return std::ranges::count(runs, state, &RunRecord::state);
  };
  if (runs.empty() || runs.front().index < 0 || of(RunState::finished) > 0) return {};
  const auto failed = of(RunState::failed);
  const std::string sweep = runs.front().path.parent_path().parent_path().string();
  const std::string name =
      side.empty() ? sweep : fmt::format("{} ({})", side, runs.front().variant);
  return fmt::format("{}; see `tpudist sweep status {}`",
                     failed == std::ssize(runs) ? fmt::format("all runs of {} failed", name)
                                                : fmt::format("no run of {} has {} yet", name,
                                                              failed > 0 ? "finished" : "ended"),
                     sweep);
}

std::string missing_text(const SystemPair& pair) {
  std::vector<std::string> lines = pair.a.scores.left_out;
  lines.insert(lines.end(), pair.b.scores.left_out.begin(), pair.b.scores.left_out.end());
  return lines.empty() ? "no run has any" : join(lines, "; ");
}

}  // namespace tpudist
