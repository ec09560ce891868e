#pragma once

#include <filesystem>
#include <vector>

#include "ensemble/judgement.hpp"

namespace tpudist {

// Judges and combines members from files of predictions (a run folder stands for its predictions.h5),
// prints a table for each split and writes the same as JSON if a file is given. Files of several
// collections are judged one collection after the other. With `least` > 0 inputs that are missing or
// damaged are left out with a warning, and so are incomplete columns, as long as `least` columns (or
// members, where nothing is held out) are left. Throws ConfigError and DataError, which name the input.
void ensemble_predictions(const std::vector<std::filesystem::path>& inputs,
                          const JudgementOptions& options, int least,
                          const std::filesystem::path& json);

}  // namespace tpudist
