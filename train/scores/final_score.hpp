#pragma once

#include <span>
#include <string>

namespace tpudist {

// The score of one collection: the mean over its graphs of the metric that counts there.
struct CollectionScore {
  std::string collection;
  double score = 0;  // NaN where it is undefined
};

// The competition's final score: the mean over collections, each counting alike, whatever they are.
// NaN where there is none, or the score of one is undefined.
double final_score(std::span<const CollectionScore> scores);

// One line with that mean and the collections that it covers; of TpuGraphs' five it names those that
// are missing, because the final score of the competition is the mean of all five. Ends with a
// newline.
std::string final_score_text(std::span<const CollectionScore> scores);

}  // namespace tpudist
