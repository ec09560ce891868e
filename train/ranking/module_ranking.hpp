#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "data/modules/module_file.hpp"
#include "statistics/combination.hpp"
#include "statistics/member_spread.hpp"
#include "train/experiment/context.hpp"
#include "train/scoring/inference.hpp"

namespace tpudist {

// One distinct configuration of a module, as an ensemble ranks it.
struct RankedConfig {
  std::vector<std::int64_t> configs;  // its numbers in the file, rising: equal configurations
  double score = 0;                   // of all members combined; lower is faster
  MemberSpread spread;                // among the distinct configurations
};

// A member of the runs that were asked.
struct RankingMember {
  std::filesystem::path run;
  int member = 0;              // in its run
  std::string why_left_out{};  // empty where it took part
};

// A module ranked by the members of one or more runs. Plain data.
struct ModuleRanking {
  std::vector<RankingMember> members;
  // Distinct configurations, the fastest first; equal scores by number.
  std::vector<RankedConfig> ranking;
  // Kendall tau-b of the combined scores with the run times of the file, over all configurations of
  // the file. NaN where it has no run times, or they or the scores are all equal.
  double kendall_tau = std::numeric_limits<double>::quiet_NaN();
};

// Ranks a module by all members of all runs together. Scores and order are those of score_runs on
// the converted file. A member that failed in training, or whose scores are not finite, is left
// out. Collective; all ranks get the same. Throws ConfigError where a run ranks graphs of the other
// kind (layout or tile) or one training is given twice, and Error where no member is left.
ModuleRanking rank_module(const Module& module, const std::vector<TrainedRun>& runs,
                          const Combination& combination, JobContext& context);

}  // namespace tpudist
