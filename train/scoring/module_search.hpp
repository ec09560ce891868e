#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/loading/module_file.hpp"
#include "statistics/ranking/measured_correction.hpp"
#include "statistics/ranking/predicted_gain.hpp"
#include "train/scoring/config_search.hpp"
#include "train/scoring/module_ranking.hpp"

namespace tpudist {

// Chosen by the runs' predictions (ranking_predictions), if there are any that can be read.
Pessimism pessimism_of(std::span<const RankingRun> runs);

// A module with its space and the members that score it. Borrows module and runs.
class SearchedModule {
 public:
  // Members are judged and scaled on a pool of the space's configurations, drawn by `seed`.
  // Collective. Throws as search_module.
  SearchedModule(const Module& module, const std::vector<TrainedRun>& runs,
                 const JudgementOptions& judgement, bool free, std::uint64_t seed,
                 JobContext& context);

  const ConfigSpace& space() const { return space_; }
  const ConfigSpace& grouped() const { return grouped_; }  // even if `free`
  const std::vector<ModuleRanking::Member>& members() const { return members_; }
  ScoringSession& session() { return session_; }
  const ScoringSession& session() const { return session_; }
  // The module with these configurations in place of its own, as made ones; the first is the
  // default.
  Module with_configs(std::span<const ConfigSpace::Point> points) const;
  const LayoutSpace& layouts() const { return layouts_; }
  // Borrows this object. `used` [M], among the members that take part; empty: all of them.
  EnsembleScorer scorer(double pessimism, const std::vector<bool>& used = {}) const;
  // Does the ensemble know a better configuration than the default? All members chose what a search
  // by all proposes, and members that know nothing would put it before the default too. So each half
  // of the members judges the first proposal of a search by the other half, with a quarter of the
  // evaluations. Collective.
  KnownGain known_gain(SearchOptions options, double pessimism, JobContext& context) const;

 private:
  const Module& module_;
  const LayoutSpace layouts_;
  const ConfigSpace grouped_, space_;
  const Module pool_;
  ScoringSession session_;
  MemberWeights weights_;
  ScoresByMember prediction_;  // of the pool
  std::vector<ModuleRanking::Member> members_;
  std::vector<bool> used_;  // [M] members that take part
};

// Measured configurations of a searched space.
struct MeasuredPoints {
  std::vector<ConfigSpace::Point> points;
  std::vector<Measurement> measurements;  // by index in `points`
};

// Configurations found for a module. Plain data.
struct ModuleSearch {
  SearchResult found;
  Module listed;  // the default configuration, then the proposals, as made configurations
  std::vector<ModuleRanking::Member> members;
  double configs = 0;               // of the space
  std::vector<int> changed = {};    // [proposals] the number of groups with another choice
  std::vector<double> broken = {};  // [proposals] ConfigSpace::broken_share; empty with groups
  Pessimism pessimism = {};
  KnownGain known = {};                // without measurements
  MeasuredCorrection correction = {};  // with them: of the measured points
};

// Searches the layouts of a module, read with the runs' scored_reduction, by all members of all
// runs together. The module's configurations give groups, states and starts, unless they were made:
// then its layout space does. `free`: every node has a choice of its own. Measurements correct the
// score: the search is for the shortest predicted logarithm of a time, one start begins at the
// fastest measured configuration, and no measured one is proposed; `measured` must return the same
// on all ranks. Collective; the result is the same on all ranks. Throws as rank_module; ConfigError
// for tile graphs and for networks that ScoringSession::require_scores_of_configs refuses;
// DataError if there is only one configuration.
ModuleSearch search_module(
    const Module& module, const std::vector<TrainedRun>& runs, const JudgementOptions& judgement,
    SearchOptions options, bool free, JobContext& context,
    const std::function<MeasuredPoints(const SearchedModule&)>& measured = {});

}  // namespace tpudist
