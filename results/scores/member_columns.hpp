#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "results/records/predictions.hpp"

namespace tpudist {

// [runs] the member numbers of each run.
std::vector<std::set<int>> member_numbers(const PredictionsHeader& header);

// Hash of variant_hash and, if known, of the weights at train.init_from. Runs with different recipe
// hashes belong to different trainings.
std::uint64_t recipe_hash(const PredictedRun& run);
// Whether two runs with these init hashes (0: none, or unknown) surely began with other weights.
bool other_first_weights(std::uint64_t a, std::uint64_t b);
// A line if runs with equal settings are several recipes, by their first weights; else empty.
std::string several_recipes_text(const PredictionsHeader& header);

// The number of each run's training [runs], from 0 in the order of runs. A training is one complete
// run: all members of one recipe, seed.init and seed.order, in one run folder or in several. Two
// such runs with the same member number and different weights (for example imported ones) are two
// trainings.
std::vector<int> trainings_of(const PredictionsHeader& header);

// Members that are combined as one: a single member, or members of one training that each hold out
// a different fold.
struct MemberColumn {
  std::string name;          // "member 3", or "xla seed 1/2 members 5-9"
  std::vector<int> members;  // indices in the header: one for each fold, or a single one
  int training = 0;          // number from trainings_of

  // The member that scores a graph: the only member, or the one that holds out the graph's fold; -1
  // if there is none.
  int member_for(const PredictionsHeader& header, const PredictionEntry& graph) const;
};

// Every member as a column. If there are several runs, its name includes the run.
std::vector<MemberColumn> single_columns(const PredictionsHeader& header);

// The members that hold out folds, by training: member number n belongs to column n / folds of its
// training. Only complete columns, with a member for every fold of `header.graphs`, can be combined
// over all training graphs. Throws ConfigError, which names training and fold of the first missing
// member. With `least` > 0 drops incomplete columns instead and names them in `left_out`, as long
// as `least` columns remain.
std::vector<MemberColumn> fold_columns(const PredictionsHeader& header, int least,
                                       std::vector<std::string>& left_out);

// [M] "member 3"; with several runs "xla seed 1/2 member 3", or "runs/xla member 3" if another run
// has a member of that name.
std::vector<std::string> member_labels(const PredictionsHeader& header);

}  // namespace tpudist
