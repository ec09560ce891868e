#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "results/scores/judgement.hpp"
#include "train/scoring/scoring_session.hpp"

namespace tpudist {

// How well the members and their combination rank the graphs of a split. Plain data.
struct Evaluation {
  std::string split;
  bool is_tile = false;
  // Whether only the members that never trained on a graph scored it, because other members did
  // (EnsembleConfig::trains_on_valid). Otherwise no member trains on the split, or the scores of all
  // members were requested.
  bool held_out_only = false;
  std::int64_t most_rows = 0;         // most scored rows of a graph; 0 = every measured row
  std::vector<MemberName> names;      // [M]
  std::vector<ScoringSlates> slates;  // [M] slates in which the member's scores were computed
  std::vector<std::vector<GraphMetrics>> members;  // [M][graphs]
  std::vector<std::uint64_t> data_hashes;          // [graphs] data_hash of the scored rows
  std::vector<GraphMetrics> ensemble;  // [graphs] of the combined members, without failed members
  std::vector<bool> used;              // [M] whether the member is combined
  std::vector<bool> finite;            // [M] whether all its scores are finite, if it is used
  std::vector<std::string> left_out;   // [M] why the member is not combined
  Combination combination;

  // [M] mean over graphs of the collection's primary metric (Kendall tau, or the tile score); NaN
  // for a member with a score that is not finite, whose metrics are undefined on all graphs.
  std::vector<double> member_means() const;
  // The same for the combined members.
  double ensemble_mean() const;
  // `judged_mean` if set. Otherwise on each graph the mean over the members that scored the graph,
  // and then the mean over graphs.
  double mean_of_members() const;
  // TableJudgement::mean_of_members if the members were judged; includes rejected members.
  std::optional<double> judged_mean;
};

// An evaluation without graphs, for the session's members that `use` flags.
Evaluation start_evaluation(const ScoringSession& session, const std::vector<bool>& use,
                            std::int64_t most_rows = 0, const Combination& combination = {});

// Appends graphs of the dataset, with the metrics of each member. The metrics of the combined
// members stay undefined.
void add_members(Evaluation& evaluation, const std::vector<ScoresByMember>& predictions,
                 const Dataset& dataset, ThreadPool& pool);
// The same, with the metrics of the combined members.
void add_graphs(Evaluation& evaluation, const std::vector<ScoresByMember>& predictions,
                const Dataset& dataset, ThreadPool& pool);

// The evaluation after judgement: without the metrics of members that are not combined, and with
// the metrics of the combination.
Evaluation judged(Evaluation evaluation, const Judgement& judgement);

// Sorts the graphs by name; names are distinct.
void sort_graphs(Evaluation& evaluation);

// Scores all graphs of a session of one network with the weights `flat` [M, P]. Stops when `stops`,
// if given, returns true; the remaining graphs are then missing. Collective.
Evaluation evaluate_members(const ScoringSession& session, std::span<const float> flat,
                            const std::vector<bool>& use, std::int64_t most_rows,
                            JobContext& context, const std::function<bool()>& stops = {});

// An aligned table with a row per graph: the members' primary metric, the ensemble's, and the
// ensemble's other metrics.
std::string evaluation_table(const Evaluation& evaluation);
nlohmann::json evaluation_json(const Evaluation& evaluation);

}  // namespace tpudist
