#pragma once

#include <filesystem>
#include <vector>

#include "ensemble/judgement.hpp"

namespace tpudist {

// Judges and combines members from prediction files (a run folder stands for its predictions.h5).
// Prints a table for each split and writes the same as JSON if a file is given. Collections are
// judged one after another. With `least` > 0, missing or damaged inputs are left out with a
// warning, and so are incomplete columns, as long as `least` columns remain (members, where nothing
// is held out). Throws ConfigError and DataError, which name the input.
void ensemble_predictions(const std::vector<std::filesystem::path>& inputs,
                          const JudgementOptions& options, int least,
                          const std::filesystem::path& json);

}  // namespace tpudist
