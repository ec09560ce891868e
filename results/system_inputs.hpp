#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/system_scores.hpp"

namespace tpudist {

// The runs of one system from what a user names: folders of runs, files of predictions, folders of
// sweeps with one variant, and variants of a sweep as FOLDER:NUMBER or FOLDER:LABEL. Throws
// ConfigError where there is nothing of the name, and for a sweep of several variants, with their
// list; DataError as read_results.
std::vector<RunRecord> read_system(std::span<const std::string> inputs);

// Why there is nothing to compare: what each side left out, on one line.
std::string missing_text(const SystemPair& pair);

}  // namespace tpudist
