#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

struct ImportedRun {
  std::uint64_t parameter_hash = 0;
  // Names of the statistics that no file of a member holds; they are as a new network has them.
  std::vector<std::string> absent_statistics;
  // Whether the shards were there, so that training can go on from these weights.
  bool can_resume = false;
};

// Makes a complete run of weights that were trained elsewhere: `files` holds one safetensors file
// (read_weights) for each member of the experiment, in the order of their numbers. The folder `run`
// gets config.yaml, a checkpoint of step 0 with these weights, and folds.yaml where members hold
// graphs out; it can be scored, and trained further with `train --resume` where the shards are
// there now. Nothing is written before all files have been read. For one rank.
//
// Throws ConfigError when there are more or fewer files than members, and when `run` holds a run or
// anything else; DataError when a file is damaged or of another network.
ImportedRun import_run(const Experiment& experiment,
                       const std::vector<std::filesystem::path>& files,
                       const std::filesystem::path& run, JobContext& context);

}  // namespace tpudist
