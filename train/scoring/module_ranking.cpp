#include "train/scoring/module_ranking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "core/error.hpp"
#include "statistics/ranking/metrics.hpp"
#include "train/scoring/in_memory_predictions.hpp"
#include "train/scoring/prediction_records.hpp"
#include "train/scoring/scoring_session.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

// The numbers of the configurations of each group, by group.
std::vector<std::vector<std::int64_t>> equal_configs(std::span<const std::int32_t> group) {
  std::vector<std::vector<std::int64_t>> equal;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (static_cast<std::size_t>(group[i]) == equal.size()) equal.emplace_back();
    equal[group[i]].push_back(static_cast<std::int64_t>(i));
  }
  return equal;
}

double tau_with_times(const Dataset& dataset, const std::vector<double>& scores) {
  std::vector<double> targets;
  for (std::int64_t row = 0; row < dataset.rows(0); ++row)
    targets.push_back(dataset.target(0, row));
  return kendall_tau_b(scores, targets);
}

}  // namespace

std::vector<ModuleRanking::Member> judged_members(const ScoringSession& session,
                                                  const std::vector<const TrainedRun*>& runs,
                                                  const ScoresByMember& prediction,
                                                  const JudgementOptions& options,
                                                  ThreadPool& pool) {
  const Dataset& module = session.data();
  PredictionsHeader header;
  header.collection = module.options().collection.name;
  header.runs.emplace_back();
  std::vector<ModuleRanking::Member> members;
  for (const TrainedRun* run : runs) {
    for (PredictedMember& member : member_records(run->experiment, run->use, run->losses, 0)) {
      members.push_back({run->path, member.number});
      if (member.failed) members.back().why_left_out = "its loss was not finite in training";
      header.members.push_back(std::move(member));
    }
  }
  GraphEntry graph = module.entry(0);
  graph.split = "test";  // the file's run times, if any, must decide nothing
  header.graphs.push_back(graph_record(graph, 0, -1, std::vector<bool>(members.size(), true)));
  InMemoryPredictions scored(session, std::move(header));
  scored.add({prediction}, pool);
  const Judgement judgement = judge_members(scored, options);
  for (const Rejection& rejection : judgement.rejected) {
    const auto m = static_cast<std::size_t>(rejection.member);
    if (!judgement.used[m]) members[m].why_left_out = rejection.reason;
  }
  return members;
}

std::vector<RankingRun> ranking_runs(const std::vector<TrainedRun>& runs,
                                     const std::vector<ModuleRanking::Member>& members) {
  std::vector<RankingRun> ranking;
  for (const TrainedRun& run : runs) {
    ranking.push_back({run.path, run.parameter_hash, {}});
    for (const auto& member : members) {
      if (member.run == run.path && member.why_left_out.empty())
        ranking.back().used.insert(member.member);
    }
  }
  return ranking;
}

std::vector<const TrainedRun*> runs_to_rank(const Module& module,
                                            const std::vector<TrainedRun>& runs,
                                            JobContext& context) {
  std::vector<const TrainedRun*> all;
  const Collection& collection = module.dataset.options().collection;
  for (const TrainedRun& run : runs) {
    const Collection& own = run.experiment.data.collection;
    if (own.is_tile() != collection.is_tile()) {
      throw ConfigError(
          fmt::format("{} ranks graphs of {}, but the run before it of {}; give runs "
                      "of layout graphs or of tile graphs",
                      run.path.string(), own.name, collection.name));
    }
    warn_of_other_metis(run, context);
    all.push_back(&run);
  }
  if (module.dataset.options().reduction != scored_reduction(all))
    throw std::invalid_argument(module.dataset.graph(0).name + ": is not reduced as in scoring");
  // Sorts the runs of a split ensemble by their members.
  std::ranges::stable_sort(
      all, {}, [](const TrainedRun* run) { return run->experiment.ensemble.first_member; });
  require_other_trainings(all, context);
  require_same_segments(module.dataset, context.world);
  return all;
}

ModuleRanking rank_module(const Module& module, const std::vector<TrainedRun>& runs,
                          const JudgementOptions& judgement, JobContext& context) {
  const std::vector<const TrainedRun*> all = runs_to_rank(module, runs, context);
  ScoringSession session(module.dataset, context);
  const MemberWeights weights_of_runs = add_runs(session, all);
  context.enter("ranking");
  context.progress.start("rank", session.scores(0), "scores");
  ScoresByMember prediction;  // of the one graph
  session.score(weights_of_runs, 0, [&](std::vector<ScoresByMember> graphs) {
    prediction = std::move(graphs.front());
  });
  context.progress.finish();

  ModuleRanking result;
  result.members = judged_members(session, all, prediction, judgement, context.pool);
  const auto equal = equal_configs(module.dataset.run_times(0).group);
  std::vector<double> weights;
  std::vector<std::vector<double>> distinct;  // scores of members that take part
  for (std::size_t m = 0; m < result.members.size(); ++m) {
    weights.push_back(result.members[m].why_left_out.empty() ? 1 : 0);
    if (weights.back() == 0) continue;
    distinct.emplace_back();
    for (const auto& configs : equal)
      distinct.back().push_back(prediction.scores[m][configs.front()]);
  }
  const std::vector<double> combined = combined_scores(prediction, weights, judgement.combination);
  const std::vector<MemberSpread> spreads = member_spreads(distinct);
  for (std::size_t k = 0; k < equal.size(); ++k) {
    result.ranking.push_back({equal[k], combined[equal[k].front()], spreads[k]});
  }
  std::ranges::stable_sort(result.ranking, {}, &ModuleRanking::Config::score);
  if (module.has_times) result.kendall_tau = tau_with_times(module.dataset, combined);
  return result;
}

}  // namespace tpudist
