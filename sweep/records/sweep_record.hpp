#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sweep/records/sweep_run.hpp"

namespace tpudist {

// What decides the rows of a graph, as its shards said when the sweep was expanded.
struct FrozenGraph {
  std::string name, split;  // "train" or "valid"
  std::uint64_t source_hash = 0;
  std::int64_t configs = 0;
  bool operator==(const FrozenGraph&) const = default;
};

// All graphs of a collection that a folder of shards held, in the order (split, name).
struct FrozenData {
  std::string shards, collection;
  std::vector<FrozenGraph> graphs;
};

// Names of validation graphs by what they are for; both are empty where nothing was halved.
struct ValidationHalves {
  std::vector<std::string> choosing, confirming;
};

// What sweep.json keeps of a sweep: everything that running, resuming and comparing its runs needs, with
// the resolved experiment of every run of the first stage. Frozen: later changes of the sweep file or of
// the experiments do not reach it.
struct SweepRecord {
  std::string name;
  ChoiceScore choice = ChoiceScore::none;
  int keep = 3;                          // of the variants of a rung the best 1/keep go on
  std::string confirmed_on;              // SweepPlan::confirmed_on
  std::vector<std::string> experiments;  // names of their files without ending
  std::vector<int> variant_experiment;   // [variants]
  // [variants] Variants of equal numbers are of one experiment and are scored on the same rows of the
  // same graphs: only they are compared. Of older files: of one experiment and collection.
  std::vector<int> variant_group;
  std::vector<std::string> labels;  // [variants]
  std::vector<Stage> stages;
  std::vector<SweepRun> runs;  // of the first stage
  // What the shards held that could be read at the expansion, or when the first run began. Nothing:
  // the sweep was expanded by a version that did not look.
  std::optional<std::vector<FrozenData>> data;
  std::vector<ValidationHalves> halves;  // [experiments]; empty in older files
};

// Both as JSON, written atomically. The runs of a later stage stand in a file of their own.
void write_record(const std::filesystem::path& path, const SweepRecord& record);
void write_stage_runs(const std::filesystem::path& path, const std::vector<SweepRun>& runs);

// Throw DataError that names the file when it is damaged or of another format, or when two of its runs
// are the same.
SweepRecord read_record(const std::filesystem::path& path);
// The runs of stage `stage` of `record`.
std::vector<SweepRun> read_stage_runs(const std::filesystem::path& path, const SweepRecord& record,
                                      int stage);

}  // namespace tpudist
