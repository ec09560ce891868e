#pragma once

#include "ensemble/predictions.hpp"

namespace tpudist {

// A source of members' predictions: a file, several files, or memory.
class PredictionSource {
 public:
  virtual ~PredictionSource() = default;
  virtual const PredictionsHeader& header() const = 0;
  // The predictions for graph `graph` of the header. Throws what reading throws.
  virtual PredictionRows read(int graph) const = 0;
};

}  // namespace tpudist
