#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/records/sweep_run.hpp"

namespace tpudist {

// What sweep.json keeps of a sweep: everything that running, resuming and comparing its runs needs, with
// the resolved experiment of every run of the first stage. Frozen: later changes of the sweep file or of
// the experiments do not reach it.
struct SweepRecord {
  std::string name;
  ChoiceScore choice = ChoiceScore::none;
  int keep = 3;                          // of the variants of a rung the best 1/keep go on
  std::string confirmed_on;              // SweepPlan::confirmed_on
  std::vector<std::string> experiments;  // names of their files without ending
  std::vector<int> variant_experiment;   // [variants]
  std::vector<std::string> labels;       // [variants]
  std::vector<Stage> stages;
  std::vector<SweepRun> runs;  // of the first stage
};

// Both as JSON, written atomically. The runs of a later stage stand in a file of their own.
void write_record(const std::filesystem::path& path, const SweepRecord& record);
void write_stage_runs(const std::filesystem::path& path, const std::vector<SweepRun>& runs);

// Throw DataError that names the file when it is damaged or of another format.
SweepRecord read_record(const std::filesystem::path& path);
std::vector<SweepRun> read_stage_runs(const std::filesystem::path& path);

}  // namespace tpudist
