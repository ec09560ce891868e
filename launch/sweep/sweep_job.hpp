#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dist/health/job_context.hpp"
#include "launch/sweep/sweep_folder.hpp"

namespace tpudist {

// Cuts `ranks` ranks into groups of these sizes, in rank order, and returns the group of each rank.
// Repeats the last size; the last group takes the remaining ranks, which may be fewer. Empty
// `sizes`: one group of all ranks. Throws ConfigError when a size is below 1, or when there are
// more sizes than groups.
std::vector<int> group_of_ranks(const std::vector<int>& sizes, int ranks);

struct SweepJobOptions {
  std::vector<int> group_sizes;  // see group_of_ranks
  std::optional<int> index;      // train only this run, even if it failed before
  bool go_on = false;            // begin a later stage although runs of the stage before failed
};

// The result of a job, the same on every rank.
struct SweepOutcome {
  int finished = 0, failed = 0;  // runs that this job trained
  bool stopped = false;          // on request; the runs have checkpoints
  bool group_lost = false;       // a group ended with an error of the sweep's folder
};

// Trains the runs of a sweep that have not ended. Collective over all ranks of the job, which are
// split into groups. Each group takes one run after another by locking the run's claim, so that
// other groups, jobs and array tasks train other runs. No call is collective over all ranks while
// groups work.
//
// An error ends only its run: the error is recorded, and the group continues with the next run. One
// exception: if a rank fails within a step, the other ranks of its group would wait forever, so the
// job ends (DistError) within seconds. The next job continues the runs of other groups from their
// checkpoints. If the shards of a run are missing or have other graphs than at the expansion, the
// group ends, and the run does not count as failed.
//
// A later stage begins when every run of the stage before has ended, wherever it was trained. If
// one of these runs failed, the later stage begins only with `go_on`.
SweepOutcome run_sweep(const SweepFolder& folder, const SweepJobOptions& options,
                       JobContext& context, const std::function<bool()>& stop_requested);

}  // namespace tpudist
