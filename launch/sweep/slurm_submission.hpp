#pragma once

#include <string>
#include <vector>

#include "launch/sweep/sweep_folder.hpp"

namespace tpudist {

// The requests of a sweep's jobs to Slurm.
struct SlurmOptions {
  int nodes = 1;                     // of a run
  int tasks_per_node = 1;            // ranks
  int cpus_per_task = 0;             // 0: the cluster's default
  int gpus_per_node = 0;             // 0: none
  std::string time, partition;       // empty: the scripts' or the cluster's default
  std::vector<std::string> options;  // more options of sbatch, one word each
  int parallel = 0;                  // most tasks of an array that run at once; 0: no limit
  int largest_array = 1000;          // tasks per array; the default of Slurm's MaxArraySize is 1001
  bool go_on = false;                // begin later stages although runs of the stage before failed
  int min_members = 0;               // needed for the ensemble; 0: default of `tpudist ensemble`
  std::string split = "valid", csv;  // of the ensemble; empty: no CSV
};

// A job to submit. `after`: jobs of the list that must end first, with or without success.
struct SlurmJob {
  std::string name;                    // "search, runs 0 to 999"
  std::vector<std::string> arguments;  // of sbatch, without the dependency
  std::vector<int> after;
};

// The jobs that train all unfinished runs and combine them. A stage is one array, or several if it
// has more runs than an array may have. The last job makes the ensemble, or one ensemble of each
// variant if none is chosen. An array begins when the arrays before it have ended or failed. If a
// run of these arrays failed, the tasks end with advice, unless `go_on` is set. `program`: absolute
// path of tpudist. Throws ConfigError when Slurm would take a path for something else.
std::vector<SlurmJob> slurm_jobs(const SweepFolder& folder, const SlurmOptions& options,
                                 const std::string& program);

// Writes slurm/sweep.sbatch and slurm/ensemble.sbatch into the sweep's folder.
void write_slurm_scripts(const SweepFolder& folder);

// Submits a job that waits for jobs `after_ids`. Returns its id. Throws Error with sbatch's
// message.
std::string submit(const SlurmJob& job, const std::vector<std::string>& after_ids);

// The jobs of the sweep that squeue lists; if runs are left but no jobs, advice. Empty if nothing
// was submitted, or nothing is left.
std::string queue_text(const SweepFolder& folder);

// The command line of submit(), quoted for a shell.
std::string command_line(const SlurmJob& job, const std::vector<std::string>& after_ids);

}  // namespace tpudist
