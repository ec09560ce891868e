#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/aligned.hpp"
#include "data/loading/seen_graphs.hpp"
#include "dist/health/agreement.hpp"
#include "dist/health/job_context.hpp"
#include "results/records/initial_and_final_loss.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/scoring_session.hpp"

namespace tpudist {

// The weights to score. Only a run with `train.average` has averaged weights.
enum class Weights { averaged, raw };

// A finished or running run, opened to score with one of its checkpoints.
struct TrainedRun {
  std::filesystem::path path;
  Experiment experiment;
  std::int64_t step = 0;
  AlignedFloats flat;                                             // [M, P]
  std::vector<bool> use;                                          // [M] members that did not fail
  bool averaged = false;                                          // whether `flat` has averages
  std::uint64_t parameter_hash = 0;                               // of `flat`
  std::uint64_t selection_hash = 0;                               // of CheckpointSummary
  std::optional<std::uint64_t> fold_hash, metis_hash, init_hash;  // of CheckpointSummary
  std::vector<InitialAndFinalLoss> losses;                        // [M]
};

// `which` checkpoint: `last` (the newest complete one), `best` or a step. Writes a missing or
// damaged config.yaml again from the checkpoint, with a warning. Throws ConfigError when the folder
// holds no run, when the run has no such checkpoint, when the checkpoint's settings differ from
// config.yaml, and when every member failed; DataError when the checkpoint is damaged.
TrainedRun open_run(const std::filesystem::path& path, std::string_view which = "last",
                    Weights weights = Weights::averaged);
// The graphs that members of the run were trained on. Reads the run's seen_graphs.json; for an
// imported run, folds.yaml and the run's shards, or the folder `shards` if the run's are gone.
// Throws what reading these files throws, and DataError when the shards' graphs have changed.
TrainedOn trained_on(const TrainedRun& run, const std::filesystem::path& shards);

// [graphs] The fold of each graph in the run's folds.yaml. Throws as FoldFile.
std::vector<int> recorded_folds(const TrainedRun& run, std::span<const GraphEntry> graphs);

// Describes the opened checkpoint for messages: "step 500" or "step 500, averaged weights".
std::string opened_at(const TrainedRun& run);

// Throws ConfigError when two runs of one recipe have a member with equal weights: one training is
// given twice, as the same folder, a link or a copy. Warns of equal weights in two recipes, or
// within a run. Failed members do not count. All ranks come to the same result.
void require_other_trainings(const std::vector<const TrainedRun*>& runs, JobContext& context);

// On rank 0, warns if METIS cut graphs in training and this program's METIS cuts other segments.
void warn_of_other_metis(const TrainedRun& run, JobContext& context);

// The part of graphs that these runs score (GraphReduction::scored), with config edges if a run
// uses config edges. Throws ConfigError when two runs score different parts.
GraphReduction scored_reduction(const std::vector<const TrainedRun*>& runs);

// Adds the members of all runs to a session, one run after another. Returns their weights, borrowed
// from the runs.
MemberWeights add_runs(ScoringSession& session, const std::vector<const TrainedRun*>& runs);

// The values of a run that all ranks of a job must have in common when they score with the run.
std::vector<AgreedValue> values_to_agree(const TrainedRun& run);

}  // namespace tpudist
