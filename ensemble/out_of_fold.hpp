#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ensemble/predictions_file.hpp"

namespace tpudist {

// How well a member ranks the graphs of the fold that it never saw.
struct OutOfFoldScore {
  int number = 0, fold = -1;  // of the member
  int graphs = 0;             // of its fold where the metric is defined
  double score = 0;           // mean of the primary metric over these; NaN where there is none
};

// Of the members that hold out a fold, in their order; those that failed have no graph. Reads every
// graph that lies in a fold.
std::vector<OutOfFoldScore> out_of_fold_scores(const PredictionsFile& predictions);

// {"metric": "kendall_tau", "most_rows": 0, "members": [{"number", "fold", "graphs", "score"}]};
// a score that is NaN is null.
nlohmann::json out_of_fold_json(const PredictionsHeader& header,
                                const std::vector<OutOfFoldScore>& scores);

}  // namespace tpudist
