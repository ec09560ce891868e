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
// experiments and the graphs of their shards.
struct SweepPlan {
  SweepFile file;
  std::vector<Variant> variants;
  std::vector<std::string> labels;       // [variants]
  std::vector<int> groups;               // [variants] SweepRecord::variant_group
  std::vector<FrozenData> data;          // of the shards that could be read
  std::vector<ValidationHalves> halves;  // [experiments]
  // What runs that choose, and those that confirm, are given beside it. [experiments]
  std::vector<std::vector<std::string>> choosing_overrides, confirming_overrides;
  std::string
      confirmed_on;  // "other graphs than ...", as the report says it; empty: nothing is chosen
  std::vector<Stage> stages;
  std::vector<SweepRun> first_stage;
};

// Resolves a sweep: reads every experiment, lists its runs and the graphs of its shards. `frozen`: what
// sweep.json knows of a sweep that is expanded already, whose graphs and halves then hold. Throws
// ConfigError for what an experiment file gets wrong (naming the variants), for runs that are equal,
// and where variants are to be chosen between that are scored on other graphs; DataError for
// shards whose validation families are to be halved, and that cannot be read.
SweepPlan plan_sweep(SweepFile sweep, const SweepRecord* frozen = nullptr);

// What sweep.json is to keep of it.
SweepRecord record_of(const SweepPlan& plan);

// An experiment of the sweep without any override, resolved, with its shards as an absolute path.
std::string resolved_base(const SweepPlan& plan, int experiment);

// The runs of stage `stage` for these variants, numbered from its first index.
std::vector<SweepRun> runs_of_stage(const SweepPlan& plan, int stage,
                                    const std::vector<int>& variants);

}  // namespace tpudist
