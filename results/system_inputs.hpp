#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/system_scores.hpp"

namespace tpudist {

// The runs of one system from a user's inputs: folders of runs, prediction files, folders of sweeps
// with one variant, and variants of a sweep as FOLDER:NUMBER or FOLDER:LABEL. Throws ConfigError
// when nothing has that name, and for a sweep of several variants, which it lists; DataError as
// read_results.
std::vector<RunRecord> read_system(std::span<const std::string> inputs);

// Why there is nothing to compare: what is left out on each side, in one line.
std::string missing_text(const SystemPair& pair);

}  // namespace tpudist
