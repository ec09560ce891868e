#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ensemble/prediction_source.hpp"
#include "ensemble/predictions_file.hpp"

namespace tpudist {

// Files of one collection as one: the members of all of them, and the graphs that any of them has. A
// member has no scores of a graph that its file lacks.
class JoinedPredictions : public PredictionSource {
 public:
  // At least one file. Throws ConfigError, which names the files, where they cannot be joined: other
  // collections, other rows, other folds, a member of one variant that two of them have (equal
  // weights, or equal seeds unless the weights of the same members differ), runs of one variant at different steps. Warns
  // of equal weights in two variants, and of equal seeds with other weights (imported ones, say).
  explicit JoinedPredictions(std::vector<std::shared_ptr<const PredictionsFile>> files);

  const PredictionsHeader& header() const override { return header_; }
  // Throws DataError where files have other rows or run times of the graph.
  PredictionRows read(int graph) const override;

 private:
  void check_alike() const;
  void join_members();
  void join_graphs();

  std::vector<std::shared_ptr<const PredictionsFile>> files_;
  PredictionsHeader header_;
  std::vector<int> first_member_;         // [files] index of the file's first member
  std::vector<std::vector<int>> places_;  // [G][files] the graph in the file; -1: it lacks it
};

}  // namespace tpudist
