#pragma once

#include <string>
#include <vector>

#include "sweep/sweep_folder.hpp"

namespace tpudist {

// What the jobs of a sweep ask of Slurm.
struct SlurmOptions {
  int nodes = 1;                     // of a run
  int tasks_per_node = 1;            // ranks
  int cpus_per_task = 0;             // 0: as the cluster sets it
  int gpus_per_node = 0;             // 0: none are asked for
  std::string time, partition;       // empty: as the scripts, the cluster set it
  std::vector<std::string> options;  // more options of sbatch, each a word
  int parallel = 0;                  // most tasks of an array that run at a time; 0: no limit
  int largest_array =
      1000;             // tasks of an array; Slurm's MaxArraySize is 1001 where nobody changed it
  bool go_on = false;   // later stages begin although runs of the one before failed
  int min_members = 0;  // that the ensemble needs; 0: as `tpudist ensemble` has it
  std::string split = "valid", csv;  // of the ensemble; no CSV where empty
};

// A job to submit. `after`: jobs of the list that have to end first, however they end.
struct SlurmJob {
  std::string name;                    // "search, runs 0 to 999"
  std::vector<std::string> arguments;  // of sbatch, without the dependency
  std::vector<int> after;
};

// The jobs that train what has not finished and combine it: for each stage an array, or several where
// it has more runs than an array may have, then the ensemble. An array begins when those before have ended,
// however; where one of their runs failed its tasks then end with what to do, unless `go_on` is given.
// `program`: absolute path of tpudist.
std::vector<SlurmJob> slurm_jobs(const SweepFolder& folder, const SlurmOptions& options,
                                 const std::string& program);

// Writes slurm/sweep.sbatch and slurm/ensemble.sbatch into the sweep's folder.
void write_slurm_scripts(const SweepFolder& folder);

// Submits a job behind others, by their ids, and returns its id. Throws Error with what sbatch says.
std::string submit(const SlurmJob& job, const std::vector<std::string>& after_ids);

// The command line that submit() runs, quoted for a shell.
std::string command_line(const SlurmJob& job, const std::vector<std::string>& after_ids);

}  // namespace tpudist
