#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/means.hpp"
#include "data/loading/module_file.hpp"
#include "dist/health/job_context.hpp"
#include "results/scores/judgement.hpp"
#include "results/scores/measurement_advice.hpp"
#include "statistics/ranking/combination.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist {

// A module ranked by the members of one or more runs. Plain data.
struct ModuleRanking {
  // One distinct configuration of a module, as ranked by an ensemble.
  struct Config {
    std::vector<std::int64_t> configs;  // numbers of these equal configurations, ascending
    double score = 0;                   // of all members combined; lower is faster
    MemberSpread spread;                // among the distinct configurations
  };

  // A member of the given runs.
  struct Member {
    std::filesystem::path run;
    int member = 0;              // its number (EnsembleConfig::number_of)
    std::string why_left_out{};  // empty if the member took part
  };

  std::vector<Member> members;
  // Distinct configurations, the fastest first; equal scores by number.
  std::vector<Config> ranking;
  // Kendall tau-b between the combined scores and the run times, over all configurations of the
  // file. NaN if the file has no run times, or all run times or all scores are equal.
  double kendall_tau = kNone;
};

// The runs, sorted by their members, that rank a module read with their scored_reduction. Collective.
// Throws ConfigError as rank_module.
std::vector<const TrainedRun*> runs_to_rank(const Module& module,
                                            const std::vector<TrainedRun>& runs,
                                            JobContext& context);

// The members of runs that scored the session's graph, with the reason why a member does not count,
// as in all commands. Throws what judge throws if no member is left.
std::vector<ModuleRanking::Member> judged_members(const ScoringSession& session,
                                                  const std::vector<const TrainedRun*>& runs,
                                                  const ScoresByMember& prediction,
                                                  const JudgementOptions& options,
                                                  ThreadPool& pool);

// The runs with their members that count.
std::vector<RankingRun> ranking_runs(const std::vector<TrainedRun>& runs,
                                     const std::vector<ModuleRanking::Member>& members);

// Ranks a module, read with the runs' scored_reduction, by all members of all runs together.
// Members, scores and order equal those of score_runs on the converted file as test split, which
// has no run times. Leaves out members that failed in training or that judge_members rejects.
// Collective; the result is the same on all ranks. Throws ConfigError if a run ranks graphs of the
// other kind (layout or tile) or if a training is given twice, and what judge throws if no member is
// left.
ModuleRanking rank_module(const Module& module, const std::vector<TrainedRun>& runs,
                          const JudgementOptions& judgement, JobContext& context);

}  // namespace tpudist
