#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/thread_pool.hpp"
#include "data/dataset.hpp"
#include "train/score_table.hpp"
#include "train/scoring.hpp"

namespace tpudist {

// How well the members and their mean rank the graphs of a split. Plain data.
struct Evaluation {
  std::string split;
  bool is_tile = false;
  std::vector<std::vector<GraphScores>> members;  // [M][graphs]
  std::vector<GraphScores> ensemble;  // [graphs], of the mean over the members that did not fail
  std::vector<bool> used;             // [M] members in the mean

  // Mean over graphs of the collection's main metric (Kendall tau, or the tile score), per member.
  std::vector<double> member_means() const;
  double ensemble_mean() const;
};

// Throws Error when a split without run times (test) is asked for.
Evaluation evaluate_predictions(const std::vector<GraphPrediction>& predictions,
                                const Dataset& dataset, const std::vector<bool>& use,
                                ThreadPool& pool);

// An aligned table: a row for each graph, its members' main metric, the ensemble's, and the
// ensemble's other metrics.
std::string evaluation_table(const Evaluation& evaluation);
nlohmann::json evaluation_json(const Evaluation& evaluation);

}  // namespace tpudist
