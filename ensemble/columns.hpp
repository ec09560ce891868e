#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "ensemble/predictions.hpp"

namespace tpudist {

// [runs] the numbers of their members.
std::vector<std::set<int>> member_numbers(const PredictionsHeader& header);

// A training is one complete run: all members of one recipe, seed.init and seed.order, in one run
// folder or in several. Two runs that have the same member of these but other weights (imported
// ones, say) are two trainings. Returns the number of each run's training [runs], from 0 in the
// order of runs.
std::vector<int> trainings_of(const PredictionsHeader& header);

// What is combined as one: a member, or the members of one training of which each holds out another
// fold.
struct Column {
  std::string name;          // "member 3", or "xla seed 1/2 members 5-9"
  std::vector<int> members;  // indices in the header, one for each fold, or a single one
  int training = 0;          // of trainings_of

  // The member that speaks for a graph: the one that holds out its fold, or the only one; -1 where
  // none does.
  int member_for(const PredictionsHeader& header, const PredictionEntry& graph) const;
};

// Every member by itself. Where there are several runs its name tells the run.
std::vector<Column> single_columns(const PredictionsHeader& header);

// The members that hold out folds by training: member number n belongs to the column n / folds of
// its training. Only complete columns, in which every fold of `header.graphs` has its member, can be
// combined over all training graphs. Throws ConfigError with the training and fold of the first
// member that is missing; with `least` > 0 incomplete columns are left out instead, as long as
// `least` are left, and named in `left_out`.
std::vector<Column> fold_columns(const PredictionsHeader& header, int least,
                                 std::vector<std::string>& left_out);

// [M] "member 3"; with several runs "xla seed 1/2 member 3", or "runs/xla member 3" where another run
// has a member of the former name.
std::vector<std::string> member_labels(const PredictionsHeader& header);

}  // namespace tpudist
