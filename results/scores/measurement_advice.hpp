#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "results/records/predictions.hpp"
#include "statistics/ranking/combination.hpp"
#include "statistics/ranking/measurement_promise.hpp"

namespace tpudist {

// A run whose members rank a new program.
struct RankingRun {
  std::filesystem::path path;
  std::uint64_t parameter_hash = 0;  // of the weights that rank
  std::set<int> used;                // numbers of the members that take part
};

// The predictions.h5 (`predictions.rows`) of runs that rank, as far as they are by the same weights.
struct RankingPredictions {
  std::unique_ptr<const PredictionSource> source;  // null: no run has any
  std::vector<bool> takes_part;                    // [M] members of `source` that rank
  int runs = 0;                                    // that have predictions
  std::string lack = {};                           // what the first other run lacks
};
// Throws what reading and joining throw.
RankingPredictions ranking_predictions(std::span<const RankingRun> runs);

// How many of the configurations that these runs rank first to measure. Plain data.
struct MeasurementAdvice {
  double within = 0.02, confidence = 0.9;
  std::vector<std::string> families = {};  // of each graph that it was learned from
  std::vector<std::int64_t> needed = {};   // by each of these graphs: needed_measurements
  MeasurementPromise promise = {};
  std::int64_t longest = 0;     // most distinct configurations of a graph that it was learned from
  std::string unknown = {};     // why there is nothing to learn from; else empty
  std::string collection = {};  // of these graphs: the promise is for lists like theirs
  // Lines: which runs and members it was learned from if not from all, how kin count; may be empty.
  std::string note = {};

  // "measure the first 7: with 90 % confidence the best of them is within 2 % of the best
  // configuration (from 24 families)", for a list of so many distinct
  // configurations; or why nothing can be promised. Lines.
  std::string text(std::int64_t configs) const;
  nlohmann::ordered_json json() const;
};

// Learns from ranking_predictions: on each graph with run times, from the members that never saw the
// graph and take part, combined by `combination`. Predictions that cannot be read or joined are a
// reason, no error.
MeasurementAdvice advise_measurements(std::span<const RankingRun> runs,
                                      const Combination& combination, double within,
                                      double confidence);

}  // namespace tpudist
