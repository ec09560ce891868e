#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "results/records/run_result.hpp"

namespace tpudist {

// The graphs on which runs are compared.
enum class ChoiceScore {
  none,         // nothing is chosen
  valid,        // the validation split
  out_of_fold,  // training graphs of the fold that a member held out
};

// One training of a sweep.
struct SweepRun {
  int index = 0;           // in the list of all runs, stage after stage
  std::string id;          // 16 hexadecimal digits: hash of the settings that influence the numbers
  int variant = 0;         // index into SweepPlan::variants
  int experiment = 0;      // index into SweepFile::experiments
  std::string collection;  // e.g. "layout:nlp:random"
  // The seed of parameters and order; nothing: as in the experiment.
  std::optional<std::uint64_t> seed;
  int first_member = 0, members = 1;  // trains members first_member .. first_member + members - 1
  int folds = 0;                      // member number m holds out fold m % folds; 0: no folds
  std::string config;                 // the resolved experiment file
  Inputs inputs;                      // empty while unknown
};

void to_json(nlohmann::json& json, const SweepRun& run);
void from_json(const nlohmann::json& json, SweepRun& run);

// "run 3 (0123456789abcdef)"
std::string name_of(const SweepRun& run);

// Runs that are compared with each other: a rung of successive halving, all variants if there is no
// halving, or the fresh seeds of the chosen variants. The runs of a later stage become known when
// all runs of the stage before have ended.
struct Stage {
  std::string name;          // "list", "search", "rung 1 of 3", "confirm"
  int first = 0, count = 0;  // indices of the runs; `count` is a limit until the runs are known
  std::int64_t step_divisor = 1;  // the runs train 1/step_divisor of the experiment's steps
  bool confirms = false;
};

// All graphs of a collection that a shard folder held, in the order (split, name).
struct FrozenData {
  // The facts that determine a graph's rows, as read from the shards when the sweep was expanded.
  struct Graph {
    std::string name, split;  // "train" or "valid"
    std::uint64_t source_hash = 0;
    std::int64_t configs = 0;
    bool operator==(const Graph&) const = default;
  };

  std::string shards, collection;
  std::vector<Graph> graphs;
};

// The content of sweep.json: all data to run, resume and compare the runs of a sweep, with the
// resolved experiment of every run of the first stage. Later changes of the sweep file or the
// experiments have no effect on a sweep.
struct SweepRecord {
  // Names of validation graphs by purpose; both empty if the split was not halved.
  struct Halves {
    std::vector<std::string> choosing, confirming;
  };

  std::string name;
  ChoiceScore choice = ChoiceScore::none;
  int keep = 3;           // the best 1/keep of a rung's variants continue
  bool baseline = false;  // the first variant of each experiment is confirmed beside the chosen one
  std::string confirmed_on;              // SweepPlan::confirmed_on
  std::vector<std::string> experiments;  // file names without extension
  std::vector<int> variant_experiment;   // [variants]
  // [variants] Variants with equal numbers belong to one experiment and are scored on the same rows
  // of the same graphs. Only variants with equal numbers are compared.
  std::vector<int> variant_group;
  std::vector<std::string> labels;  // [variants]
  const std::string& label(int variant) const { return labels[static_cast<std::size_t>(variant)]; }
  // "optimizer.lr=1e-3, seed 2, members 0 to 4"
  std::string text_of(const SweepRun& run) const;
  std::vector<Stage> stages;
  std::vector<SweepRun> runs;  // of the first stage
  // The content of all shards that were there when the sweep was expanded or its first run began.
  std::vector<FrozenData> data;
  std::vector<Halves> halves;  // [experiments]
};

// Whether a run of a confirming stage belongs to the baseline. The first runs of each experiment
// belong to the chosen variant.
bool is_baseline(const std::vector<SweepRun>& runs, const SweepRun& run);

// These two write JSON, atomically. The runs of each later stage have a file of their own.
void write_record(const std::filesystem::path& path, const SweepRecord& record);
void write_stage_runs(const std::filesystem::path& path, const std::vector<SweepRun>& runs);

// These two throw DataError, which names the file, when the file is damaged or of another format,
// or when two of its runs are the same.
SweepRecord read_record(const std::filesystem::path& path);
// The runs of stage `stage` of `record`.
std::vector<SweepRun> read_stage_runs(const std::filesystem::path& path, const SweepRecord& record,
                                      int stage);

}  // namespace tpudist
