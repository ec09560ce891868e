#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/experiment/experiment.hpp"

namespace tpudist {

// Reads an experiment file with `key=value` overrides. Its paths are made absolute, so that the
// resolved configuration finds its files from any working folder. Throws ConfigError with every
// mistake.
Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides = {});

}  // namespace tpudist
