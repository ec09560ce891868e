#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/records/sweep_record.hpp"
#include "results/scores/run_record.hpp"

namespace tpudist {

// Runs that are shown together. Plain data.
struct ResultSet {
  std::string title;                 // name of the sweep or the only run, else the number of runs
  std::optional<SweepRecord> sweep;  // if all of them belong to one sweep
  std::string stage;                 // of the sweep: its newest stage with known runs
  std::vector<RunRecord> runs;       // in the given order; of a sweep by index
};

// Reads folders of runs, prediction files, folders of sweeps, and folders that contain such
// folders, up to three levels deep, in the order of names. A sweep stands for the runs of its
// newest known stage, including those not begun. Runs of one experiment with different settings
// become variants, named by the difference. Each label is the shortest of name, variant, seeds,
// members and path that distinguishes the runs. Throws ConfigError when an input is none of these,
// and DataError when the list of a sweep's runs cannot be read.
ResultSet read_results(const std::vector<std::filesystem::path>& inputs);

}  // namespace tpudist
