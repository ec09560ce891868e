#pragma once

#include <span>
#include <string>
#include <vector>

#include "ensemble/predictions.hpp"

namespace tpudist {

// What is combined as one: a member, or the members of one variant and seed of which each holds out
// another fold.
struct Column {
  std::string name;          // "member 3", or "seed 1/2 members 5-9"
  std::vector<int> members;  // indices in the header, one for each fold, or a single one

  // The member that speaks for a graph: the one that holds out its fold, or the only one; -1 where
  // none does.
  int member_for(const PredictionsHeader& header, const PredictedGraph& graph) const;
};

// Every member by itself. Where there are several runs its name tells the run.
std::vector<Column> single_columns(const PredictionsHeader& header);

// The members that hold out folds by variant and seed: member number n belongs to the column n / folds
// of its seeds. Only complete columns, in which every fold of `header.graphs` has its member, can be
// combined over all training graphs. Throws ConfigError with the seed and fold of the first member that
// is missing; with `least` > 0 incomplete columns are left out instead, as long as `least` are left, and
// named in `left_out`.
std::vector<Column> fold_columns(const PredictionsHeader& header, int least,
                                 std::vector<std::string>& left_out);

// "member 3", with the run's name and seeds where there are several runs.
std::string member_label(const PredictionsHeader& header, int member);

}  // namespace tpudist
