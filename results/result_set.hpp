#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/run_record.hpp"
#include "sweep/records/sweep_record.hpp"

namespace tpudist {

// Runs that are looked at together. Plain data.
struct ResultSet {
  std::string title;                 // the name of the sweep or of the only run, else how many runs
  std::optional<SweepRecord> sweep;  // where all of them are of one sweep
  std::string stage;                 // of the sweep: the newest whose runs are known
  std::vector<RunRecord> runs;       // in the order given; of a sweep by index
};

// Reads folders of runs, files of predictions, folders of sweeps (each stands for the runs of its
// newest stage that is known, also those that have not begun), and folders that hold such folders, up
// to three levels deep, in the order of names. Runs of one experiment whose settings differ become
// variants, named by what differs. Labels are made unique: the shortest of
// name, variant, seeds, members and path that tells the runs apart. Throws ConfigError when an input is
// neither, and DataError when a sweep's own list cannot be read.
ResultSet read_results(const std::vector<std::filesystem::path>& inputs);

}  // namespace tpudist
