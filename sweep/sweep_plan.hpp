#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sweep/sweep_file.hpp"
#include "sweep/variant.hpp"

namespace tpudist {

// One training of a sweep.
struct SweepRun {
  int index = 0;       // in the list of all runs, stage after stage
  std::string id;      // 16 hexadecimal digits: the hash of the settings that decide its numbers
  int variant = 0;     // index into SweepPlan::variants
  int experiment = 0;  // index into SweepFile::experiments
  std::string collection;  // e.g. "layout:nlp:random"
  // Of parameters and order; nothing: the experiment's own.
  std::optional<std::uint64_t> seed;
  int first_member = 0, members = 1;  // the numbers of the members that it trains
  int folds = 0;                      // member number m holds out fold m % folds; 0: no folds
  std::string config;                 // the resolved experiment file
};

// Runs that are compared with each other: a rung of successive halving, all variants where nothing is
// halved, or the fresh seeds of what was chosen. The runs of a stage other than the first are known when
// those of the stage before have ended.
struct Stage {
  std::string name;          // "search", "rung 1 of 3", "confirm"
  int first = 0, count = 0;  // indices of its runs; the number is an upper limit until it is known
  std::int64_t step_divisor = 1;  // its runs train this part of the experiment's steps
  bool confirms = false;
};

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

// An experiment of the sweep without any override, resolved, with its shards as an absolute path.
std::string resolved_base(const SweepPlan& plan, int experiment);

// The runs of stage `stage` for these variants, numbered from its first index.
std::vector<SweepRun> runs_of_stage(const SweepPlan& plan, int stage,
                                    const std::vector<int>& variants);

}  // namespace tpudist
