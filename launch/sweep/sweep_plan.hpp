#pragma once

#include <string>
#include <vector>

#include "launch/sweep/sweep_file.hpp"
#include "results/records/sweep_record.hpp"

namespace tpudist {

// A sweep, resolved as far as possible before it runs: a function of the sweep file, its
// experiments and the graphs of their shards.
struct SweepPlan {
  SweepFile file;
  std::vector<Variant> variants;
  SweepRecord record;  // the content for sweep.json, with the runs of the first stage
  // [experiments] Additional overrides for runs that choose and for runs that confirm.
  std::vector<std::vector<std::string>> choosing_overrides, confirming_overrides;
};

// Resolves a sweep: reads every experiment, lists its runs and the graphs of its shards. `frozen`:
// the sweep.json of an existing sweep, whose graphs and halves are then used. Throws ConfigError
// for mistakes in an experiment file (the message names the variants), for equal runs, and if
// variants to choose from are scored on different graphs. Throws as read_data for shards whose
// validation families are to be halved.
SweepPlan plan_sweep(SweepFile sweep, const SweepRecord* frozen = nullptr);

// An experiment of the sweep without overrides, resolved, with an absolute path of its shards.
std::string resolved_base(const SweepPlan& plan, int experiment);

// The runs of stage `stage` for these variants, numbered from its first index.
std::vector<SweepRun> runs_of_stage(const SweepPlan& plan, int stage,
                                    const std::vector<int>& variants);

}  // namespace tpudist
