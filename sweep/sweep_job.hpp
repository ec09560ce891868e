#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sweep/sweep_folder.hpp"
#include "train/experiment/context.hpp"

namespace tpudist {

struct SweepJobOptions {
  std::vector<int> group_sizes;  // group_of_ranks
  std::optional<int> index;      // train this run only, even if it failed before
  bool go_on = false;            // begin a later stage although runs of the one before failed
};

// What a job did, the same on every rank.
struct SweepOutcome {
  int finished = 0, failed = 0;  // runs that this job trained
  bool stopped = false;          // on request; its runs have checkpoints
  bool group_lost = false;       // a group ended with an error of the sweep's folder
};

// Trains the runs of a sweep that have not ended. Collective over all ranks of the job. The ranks are
// cut into groups; each takes one run after another by locking its claim, so that other groups, jobs and
// array tasks train other runs. No call is collective over all ranks while groups work. An error ends
// the run that has it: it is recorded, and the group goes on with the next run. Only where a rank fails
// in the midst of a step, so that the others of its group wait for it for good, the job ends (DistError)
// within seconds; runs of other groups then go on from their checkpoints in the next job. Later stages
// begin when every run of the stage before has ended, wherever it was trained; where one of them failed, only
// if `go_on` says so. A run whose graphs are not those of the sweep ends the group.
SweepOutcome run_sweep(const SweepFolder& folder, const SweepJobOptions& options,
                       JobContext& context, const std::function<bool()>& stop_requested);

}  // namespace tpudist
