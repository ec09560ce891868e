#pragma once

#include <optional>
#include <vector>

#include "data/loading/dataset.hpp"
#include "results/records/predictions.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/scoring/scoring.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist {

// The predictions for a split by the members of several runs of a collection, kept in memory so
// that members can be judged before they are combined. Borrows the data set.
class InMemoryPredictions : public PredictionSource {
 public:
  // `header`: prediction_file_header of the runs that the session has.
  InMemoryPredictions(const ScoringSession& session, PredictionsHeader header);

  // Adds the next graphs of the data set, with the metrics of each member.
  void add(std::vector<ScoresByMember> predictions, ThreadPool& pool);

  // The header has no folds: each member is judged by itself, on all graphs of the split that it
  // scored. Failed members have no scores.
  const PredictionsHeader& header() const override { return header_; }
  PredictionRows read(int graph) const override;
  const std::vector<ScoresByMember>& predictions() const { return predictions_; }
  // The members by themselves (add_members); nothing of graphs of the split `test`.
  const std::optional<Evaluation>& evaluation() const { return evaluation_; }

 private:
  const Dataset& dataset_;
  PredictionsHeader header_;
  std::vector<ScoresByMember> predictions_;
  std::optional<Evaluation> evaluation_;
};

// The header for a file with these predictions. The run folders give the folds, and which member
// held out which graph. A training graph of unknown fold counts as trained on, with a warning.
// Throws ConfigError for such a validation graph if members may have been trained on it.
PredictionsHeader prediction_file_header(const Dataset& dataset,
                                         const std::vector<const TrainedRun*>& runs);

}  // namespace tpudist
