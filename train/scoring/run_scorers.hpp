#pragma once

#include <memory>
#include <vector>

#include "data/loading/dataset.hpp"
#include "train/experiment/context.hpp"
#include "train/scoring/held_out_scoring.hpp"
#include "train/scoring/inference.hpp"
#include "train/scoring/scoring.hpp"

namespace tpudist {

// One or more runs that score the graphs of one dataset; their members are concatenated in the
// order of the runs. Borrows runs and dataset. All methods with a context are collective.
class RunScorers {
 public:
  // `runs`: at least one, for graphs of the dataset's kind (layout or tile).
  RunScorers(const std::vector<const TrainedRun*>& runs, const Dataset& dataset,
             JobContext& context);
  ~RunScorers();

  // [M] whether a member did not fail, over all runs.
  const std::vector<bool>& use() const { return use_; }
  int members() const { return static_cast<int>(use_.size()); }

  // Scores all rows of these graphs with the members that `by` flags ([graphs of the dataset][M];
  // empty: all), including failed ones.
  std::vector<ScoresByMember> score(GraphRange graphs, const ScoringMembers& by,
                                    JobContext& context) const;

 private:
  class Scorer;
  std::vector<std::unique_ptr<const Scorer>> scorers_;
  std::vector<bool> use_;
};

}  // namespace tpudist
