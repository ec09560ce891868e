#pragma once

#include "report/variant_rankings.hpp"
#include "results/score_matrix.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// The scores of trainings from those of their members: rows of equal seeds, by their mean on each graph.
// Without graphs where the matrix has no rows.
RunScores mean_of_members(const ScoreMatrix& matrix);

// The scores of each training's members together on validation graphs, from the rankings; graphs on
// which one of them is undefined are left out.
RunScores members_together(const VariantRankings& rankings);

}  // namespace tpudist
