#pragma once

#include <filesystem>

#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "records/run_folder.hpp"
#include "train/state/checkpoint.hpp"

namespace tpudist {

// Writes the folds of a run into its folder as folds.yaml, unless it has the same content already.
// Does nothing without folds. Throws IoError.
void record_folds(const RunFolder& run, const FoldTable& folds);

// Throws ConfigError when the run's folds.yaml gives a graph another fold than `folds`; the message
// names the first such graph and both folds. A missing or damaged file is ignored.
void require_recorded_folds(const RunFolder& run, const FoldTable& folds);

// Throws ConfigError unless the checkpoint in the file `path` belongs to a run with the same folds
// of the training data. If folds.yaml shows it, the message says what differs. Checkpoints of
// versions up to 0.1, which balanced folds by another rule, are refused if there are folds.
void require_same_folds(const CheckpointSummary& checkpoint, const std::filesystem::path& path,
                        const RunFolder& run, const FoldTable& folds, const Dataset& training);

}  // namespace tpudist
