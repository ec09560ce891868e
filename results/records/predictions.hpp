#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/means.hpp"
#include "statistics/ranking/combination.hpp"

namespace tpudist {

// A run whose members made predictions. Plain data.
struct PredictedRun {
  std::string name;                  // of the experiment
  std::string source;                // folder or file it was read from; not stored in files
  std::int64_t step = 0;             // of the checkpoint
  std::uint64_t parameter_hash = 0;  // of the weights used for scoring
  std::uint64_t settings_hash = 0;   // of the settings that influence the numbers
  // Hash of the same settings without seeds and the choice of members. Runs with equal hashes may
  // be columns of one table.
  std::uint64_t variant_hash = 0;
  std::uint64_t init_hash = 0;  // of the weights at train.init_from; 0: none, or unknown
  std::uint64_t fold_hash = 0;  // hash_of_folds; 0 if members hold nothing out
  std::int64_t init_seed = 0, order_seed = 0;
  int folds = 0;  // 0: members hold nothing out
  // For configurations scored in slates: the most configurations of a slate (0: no slates), the
  // number of permutations averaged, and their seed.
  std::int64_t slate_configs = 0, slate_permutations = 0, slate_seed = 0;

  bool operator==(const PredictedRun&) const = default;
};

// A member of one of the runs.
struct PredictedMember {
  int run = 0;          // index of its run
  int number = 0;       // within the ensemble (EnsembleConfig::number_of)
  int fold = -1;        // held out; -1: none
  bool failed = false;  // its loss or gradient was not finite; it has no scores
  // Mean training loss of its first and last steps; NaN where unknown (InitialAndFinalLoss).
  double first_loss = kNone, last_loss = kNone, loss_margin = kNone;
};

// A scored graph.
struct PredictionEntry {
  std::string name, split;  // "train", "valid" or "test"
  std::int64_t nodes = 0;
  std::int64_t configs = 0;  // measured rows of the graph
  std::int64_t rows = 0;     // scored rows
  int fold = -1;             // its fold; -1: none
  // [M] whether the member was trained without this graph.
  std::vector<bool> held_out;
};

// The content of a prediction file except the scores.
struct PredictionsHeader {
  std::string collection;
  // Most scored rows of a graph, drawn by a fixed permutation; 0 = all.
  std::int64_t most_rows = 0;
  // The rule that combined the members when they scored; nothing if joined files have several.
  std::optional<Combination> combination;
  std::vector<PredictedRun> runs;
  std::vector<PredictedMember> members;
  std::vector<PredictionEntry> graphs;
};

// The predictions for one graph.
struct PredictionRows {
  std::vector<std::int32_t> configs;     // [r] configuration numbers, ascending
  std::vector<std::int64_t> runtime;     // [r] measured, ns; 0 in test splits
  std::vector<std::int64_t> normalizer;  // [r] tile only, else empty
  // [r] equal numbers mean equal configurations of the graph; empty if unknown.
  std::vector<std::int32_t> group;
  // [M][r] larger = slower; all NaN if the member did not score the graph.
  std::vector<std::vector<double>> scores;
  // [M] the primary metric of each member's scores; empty if not computed yet.
  std::vector<double> metrics;

  // [r] the ranked value: run time, or run time / normalizer.
  std::vector<double> targets() const;
};

// A source of members' predictions: a file, several files, or memory.
class PredictionSource {
 public:
  virtual ~PredictionSource() = default;
  virtual const PredictionsHeader& header() const = 0;
  // The predictions for graph `graph` of the header. Throws what reading throws.
  virtual PredictionRows read(int graph) const = 0;
};

// XXH3 over a graph's scored configurations and their run times. Two runs with equal hashes ranked
// the same data.
std::uint64_t data_hash(const PredictionEntry& graph, const PredictionRows& rows);

}  // namespace tpudist
