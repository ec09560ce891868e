#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sweep/records/sweep_record.hpp"
#include "sweep/records/sweep_run.hpp"
#include "sweep/sweep_file.hpp"
#include "sweep/variant.hpp"

namespace tpudist {

// A sweep with everything resolved that can be known before it runs. A function of the sweep file, its
// experiments and, where validation families are halved, the names of the graphs.
struct SweepPlan {
  SweepFile file;
  std::vector<Variant> variants;
  std::vector<std::string> labels;  // [variants]
  // What runs that choose, and those that confirm, are given beside it. [experiments]
  std::vector<std::vector<std::string>> choosing_overrides, confirming_overrides;
  std::string
      confirmed_on;  // "other graphs than ...", as the report says it; empty: nothing is chosen
  std::vector<Stage> stages;
  std::vector<SweepRun> first_stage;
};

// Resolves a sweep: reads every experiment, lists its runs and, where validation families are halved,
// the graphs of its shards. Throws ConfigError for what an experiment file gets wrong (naming the
// variant) and for runs that are equal; DataError for shards that cannot be read.
SweepPlan plan_sweep(SweepFile sweep);

// What sweep.json is to keep of it.
SweepRecord record_of(const SweepPlan& plan);

// An experiment of the sweep without any override, resolved, with its shards as an absolute path.
std::string resolved_base(const SweepPlan& plan, int experiment);

// The runs of stage `stage` for these variants, numbered from its first index.
std::vector<SweepRun> runs_of_stage(const SweepPlan& plan, int stage,
                                    const std::vector<int>& variants);

}  // namespace tpudist
