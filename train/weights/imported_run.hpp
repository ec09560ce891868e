#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dist/health/job_context.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

struct ImportedRun {
  std::uint64_t parameter_hash = 0;
  // Names of the statistics that a member's file lacks; they have the values of a new network.
  std::vector<std::string> absent_statistics;
  // Whether the shards were found, so that training can continue from these weights.
  bool can_resume = false;
};

// Makes a complete run from weights that were trained elsewhere: `files` has one safetensors file
// (read_weights) for each member of the experiment, in the order of their numbers. The folder `run`
// gets config.yaml, a checkpoint of step 0 with these weights, and folds.yaml if members hold
// graphs out. The run can be scored, and trained further with `train --resume` if the shards exist
// now. Reads all files before it writes. For one rank.
//
// Throws ConfigError when the numbers of files and members differ, and when `run` holds a run or
// other files; DataError when a file is damaged or of another network.
ImportedRun import_run(const Experiment& experiment,
                       const std::vector<std::filesystem::path>& files,
                       const std::filesystem::path& run, JobContext& context);

}  // namespace tpudist
