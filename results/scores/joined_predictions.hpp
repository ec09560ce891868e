#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "results/records/predictions_file.hpp"

namespace tpudist {

// Joins several files of one collection: all members and all graphs of the files. A member has no
// scores on a graph that its file lacks.
class JoinedPredictions : public PredictionSource {
 public:
  // Takes at least one file. Throws ConfigError, which names the files, when they cannot be joined:
  // different collections, rows or folds; a member of one variant in two files (equal weights, or
  // equal seeds unless the weights of the same member numbers differ); runs of one variant at
  // different steps. Warns of equal weights in two variants, and of equal seeds with different
  // weights (for example imported ones).
  explicit JoinedPredictions(std::vector<std::shared_ptr<const PredictionsFile>> files);

  const PredictionsHeader& header() const override { return header_; }
  // Throws DataError when files have different rows or run times of the graph.
  PredictionRows read(int graph) const override;

 private:
  void check_alike() const;
  void join_members();
  void join_graphs();

  std::vector<std::shared_ptr<const PredictionsFile>> files_;
  PredictionsHeader header_;
  std::vector<int> first_member_;         // [files] index of the file's first member
  std::vector<std::vector<int>> places_;  // [G][files] index of the graph in the file; -1: not
                                          // there
};

}  // namespace tpudist
