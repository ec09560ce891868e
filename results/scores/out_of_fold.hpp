#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "results/records/predictions_file.hpp"

namespace tpudist {

// How well a member ranks the graphs of the fold that it never saw.
struct OutOfFoldScore {
  int number = 0, fold = -1;  // of the member
  int graphs = 0;             // graphs of its fold with a defined metric
  double score = 0;           // mean of the primary metric over these graphs; NaN if there are none
};

// The scores of the members that hold out a fold, in the order of members. A failed member has no
// graph. Reads every graph in a fold.
std::vector<OutOfFoldScore> out_of_fold_scores(const PredictionsFile& predictions);

// {"metric": "kendall_tau", "most_rows": 0, "members": [{"number", "fold", "graphs", "score"}]}.
// NaN becomes null.
nlohmann::json out_of_fold_json(const PredictionsHeader& header,
                                const std::vector<OutOfFoldScore>& scores);

}  // namespace tpudist
