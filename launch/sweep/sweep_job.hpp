#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dist/health/job_context.hpp"
#include "launch/sweep/sweep_folder.hpp"

namespace tpudist {

struct SweepJobOptions {
  std::vector<int> group_sizes;  // see group_of_ranks
  std::optional<int> index;      // train only this run, even if it failed before
  bool go_on = false;            // begin a later stage although runs of the one before failed
};

// The result of a job, the same on every rank.
struct SweepOutcome {
  int finished = 0, failed = 0;  // runs that this job trained
  bool stopped = false;          // on request; its runs have checkpoints
  bool group_lost = false;       // a group ended with an error of the sweep's folder
};

// Trains the runs of a sweep that have not ended. Collective over all ranks of the job. The ranks
// are split into groups. Each group takes one run after another by locking its claim, so other
// groups, jobs and array tasks train other runs. No call is collective over all ranks while groups
// work.
//
// An error ends only its run: it is recorded, and the group continues with the next run. One
// exception: when a rank fails within a step, the others of its group would wait for it forever, so
// the job ends (DistError) within seconds; the next job continues the runs of other groups from
// their checkpoints. A run whose shards are missing, or hold other graphs than the sweep was
// expanded for, ends its group and does not count as failed.
//
// A later stage begins when every run of the stage before has ended, wherever it was trained. If
// one of them failed, it begins only with `go_on`.
SweepOutcome run_sweep(const SweepFolder& folder, const SweepJobOptions& options,
                       JobContext& context, const std::function<bool()>& stop_requested);

}  // namespace tpudist
