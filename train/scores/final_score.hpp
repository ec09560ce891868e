#pragma once

#include <span>
#include <string>

namespace tpudist {

// The score of one collection: the mean over its graphs of its primary metric.
struct CollectionScore {
  std::string collection;
  double score = 0;  // NaN if undefined
};

// The competition's final score: the mean over collections, with equal weights. NaN for no
// collection, or if any score is undefined.
double final_score(std::span<const CollectionScore> scores);

// One line with that mean and the collections in it. It names those of TpuGraphs' five that are
// missing, because the competition's final score is the mean of all five. Ends with a newline.
std::string final_score_text(std::span<const CollectionScore> scores);

}  // namespace tpudist
