#pragma once

#include <optional>
#include <span>
#include <vector>

#include "data/loading/dataset.hpp"
#include "ensemble/prediction_source.hpp"
#include "train/scoring/inference.hpp"
#include "train/scoring/scoring.hpp"

namespace tpudist {

// What members of several runs of a collection predicted for a split, kept in memory so that they can
// be judged before they are combined. Borrows the data set.
class InMemoryPredictions : public PredictionSource {
 public:
  // `header`: prediction_file_header of the runs whose members stand side by side in the predictions.
  InMemoryPredictions(const Dataset& dataset, PredictionsHeader header);

  // The next graphs of the data set.
  void add(std::vector<ScoresByMember> predictions);
  // Says what PredictionRows::metrics are: [graphs][M].
  void set_metrics(std::vector<std::vector<double>> metrics) { metrics_ = std::move(metrics); }

  // Members are judged singly, on all graphs of the split that they scored. Those that failed have
  // no scores.
  const PredictionsHeader& header() const override { return header_; }
  PredictionRows read(int graph) const override;
  const std::vector<ScoresByMember>& predictions() const { return predictions_; }

 private:
  const Dataset& dataset_;
  PredictionsHeader header_;
  std::vector<ScoresByMember> predictions_;
  std::vector<std::vector<double>> metrics_;
};

// The header of a file with these predictions: folds, and which graph was held out by whom, as the
// run folders say. A training graph whose fold is not known counts as trained on, with a warning; throws
// ConfigError where this is so of a validation graph that members may have been trained on.
PredictionsHeader prediction_file_header(const Dataset& dataset,
                                         const std::vector<const TrainedRun*>& runs);

}  // namespace tpudist
