#include "train/loop/dropped_members.hpp"

#include <cstddef>

namespace tpudist {

std::vector<int> failed_members(const EnsembleConfig& ensemble, const TrainingState& state) {
  std::vector<int> numbers;
  for (std::size_t m = 0; m < state.failed.size(); ++m) {
    if (state.failed[m]) numbers.push_back(ensemble.number_of(static_cast<int>(m)));
  }
  return numbers;
}

std::vector<EarlyStopped> stopped_members(const EnsembleConfig& ensemble,
                                          const TrainingState& state) {
  std::vector<EarlyStopped> members;
  for (std::size_t m = 0; m < state.failed.size(); ++m) {
    if (!state.early_stop.has_stopped(m)) continue;
    members.push_back({ensemble.number_of(static_cast<int>(m)), state.early_stop.stopped_at[m],
                       state.best_step[m], state.best_score[m]});
  }
  return members;
}

}  // namespace tpudist
