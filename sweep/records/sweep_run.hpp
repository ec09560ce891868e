#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tpudist {

// The graphs on which runs are compared.
enum class ChoiceScore {
  none,         // nothing is chosen
  valid,        // the validation split
  out_of_fold,  // training graphs of the fold that a member held out
};

// One training of a sweep.
struct SweepRun {
  int index = 0;       // in the list of all runs, stage after stage
  std::string id;      // 16 hexadecimal digits: the hash of the settings that influence its numbers
  int variant = 0;     // index into SweepPlan::variants
  int experiment = 0;  // index into SweepFile::experiments
  std::string collection;  // e.g. "layout:nlp:random"
  // Of parameters and order; nothing: as in the experiment.
  std::optional<std::uint64_t> seed;
  int first_member = 0, members = 1;  // the numbers of the members that it trains
  int folds = 0;                      // member number m holds out fold m % folds; 0: no folds
  std::string config;                 // the resolved experiment file
  // Dataset::selection_hash of its training data and of the validation split on which it is scored,
  // as 16 hexadecimal digits; empty while unknown.
  std::string train_data, valid_data;
};

// Runs that are compared with each other: a rung of successive halving, all variants if there is no
// halving, or the fresh seeds of the chosen variants. The runs of a later stage are known when
// those of the stage before have ended.
struct Stage {
  std::string name;          // "search", "rung 1 of 3", "confirm"
  int first = 0, count = 0;  // indices of its runs; `count` is an upper limit until they are known
  std::int64_t step_divisor = 1;  // its runs train 1/step_divisor of the experiment's steps
  bool confirms = false;
};

}  // namespace tpudist
