#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
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
  std::vector<std::string> labels;  // [variants]
  const std::string& label(int variant) const { return labels[static_cast<std::size_t>(variant)]; }
  std::vector<int> groups;               // [variants] SweepRecord::variant_group
  std::vector<FrozenData> data;          // of the shards that could be read
  std::vector<ValidationHalves> halves;  // [experiments]
  // [experiments] Additional overrides for runs that choose and for runs that confirm.
  std::vector<std::vector<std::string>> choosing_overrides, confirming_overrides;
  std::string
      confirmed_on;  // "other graphs than ...", as the report prints it; empty: nothing is chosen
  std::vector<Stage> stages;
  std::vector<SweepRun> first_stage;
};

// Resolves a sweep: reads every experiment, lists its runs and the graphs of its shards. `frozen`:
// the sweep.json of an existing sweep, whose graphs and halves are then used. Throws ConfigError
// for mistakes in an experiment file (the message names the variants), for equal runs, and if
// variants to choose from are scored on different graphs. Throws as read_data for shards whose
// validation families are to be halved.
SweepPlan plan_sweep(SweepFile sweep, const SweepRecord* frozen = nullptr);

// The content for sweep.json.
SweepRecord record_of(const SweepPlan& plan);

// An experiment of the sweep without overrides, resolved, with an absolute path of its shards.
std::string resolved_base(const SweepPlan& plan, int experiment);

// The runs of stage `stage` for these variants, numbered from its first index.
std::vector<SweepRun> runs_of_stage(const SweepPlan& plan, int stage,
                                    const std::vector<int>& variants);

}  // namespace tpudist
