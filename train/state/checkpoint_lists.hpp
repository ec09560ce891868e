#pragma once

#include <type_traits>

#include "train/state/checkpoint.hpp"

namespace tpudist {

// Which checkpoints hold a list: all, those of runs with averages, or those of runs with early
// stopping. In other runs the list is empty.
enum class ListKept { always, averages, early_stop };

// Calls visit(path in the file, ListKept, this list of each object in `all`) for each list of
// members that a checkpoint keeps, in the order of the file. For SavedWeights it visits only the
// lists that SavedWeights has. Lists of floats are [M, P], as the parameters, and all others [M].
// To add a list, add it here, to Checkpoint (checkpoint.hpp), and to what TrainingState copies
// (train/loop/training_state.cpp).
template <typename Visit, typename... Lists>
void visit_lists(const Visit& visit, Lists&... all) {
  constexpr bool whole = (std::is_same_v<std::remove_const_t<Lists>, Checkpoint> && ...);
  visit("parameters", ListKept::always, all.parameters...);
  visit("optimizer/first", ListKept::always, all.first_moment...);
  visit("optimizer/second", ListKept::always, all.second_moment...);
  visit("members/optimizer_steps", ListKept::always, all.optimizer_steps...);
  if constexpr (whole) {
    visit("members/best_score", ListKept::always, all.best_score...);
    visit("members/best_step", ListKept::always, all.best_step...);
    visit("members/failed", ListKept::always, all.failed...);
  }
  visit("average", ListKept::averages, all.average...);
  visit("members/average_points", ListKept::averages, all.average_points...);
  if constexpr (whole) {
    visit("members/stop_best", ListKept::early_stop, all.stop_best...);
    visit("members/stop_waited", ListKept::early_stop, all.stop_waited...);
    visit("members/stopped_at", ListKept::early_stop, all.stopped_at...);
  }
}

}  // namespace tpudist
