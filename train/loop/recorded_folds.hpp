#pragma once

#include <filesystem>

#include "data/folds/fold_table.hpp"
#include "data/loading/dataset.hpp"
#include "train/state/checkpoint.hpp"
#include "train/state/run_folder.hpp"

namespace tpudist {

// Writes the folds of a run into its folder as folds.yaml, unless that says the same already. Nothing
// where there are none. Throws IoError.
void record_folds(const RunFolder& run, const FoldTable& folds);

// Throws ConfigError when the run's folds.yaml gives a graph another fold than `folds`: it names the
// first such graph and both folds. A file that is missing or damaged says nothing.
void require_recorded_folds(const RunFolder& run, const FoldTable& folds);

// Throws ConfigError unless the checkpoint in the file `path` is of a run with the same folds of the
// training data: says what differs where folds.yaml tells. Checkpoints of versions up to 0.1, which
// levelled folds by another rule, are refused where there are folds.
void require_same_folds(const CheckpointSummary& checkpoint, const std::filesystem::path& path,
                        const RunFolder& run, const FoldTable& folds, const Dataset& training);

}  // namespace tpudist
