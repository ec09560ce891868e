#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "data/folds/fold_table.hpp"
#include "data/loading/dataset.hpp"
#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/scoring.hpp"

namespace tpudist {

// Which members of a run score which graphs of a dataset, [graphs][M]; empty: all members score all
// graphs.
using ScoringMembers = std::vector<std::vector<bool>>;

// For validation graphs: the members that never trained on a graph. Empty if no member trains on
// the validation split. Throws std::out_of_range if a graph is in no fold of `folds`.
ScoringMembers members_without(const EnsembleConfig& ensemble, const FoldTable& folds,
                               const Dataset& valid);

// The weights of some members of `flat` [all, P], one after another. [members, P]
AlignedFloats weights_of(std::span<const float> flat, std::size_t all,
                         std::span<const int> members);

// Like score_graphs, but each graph by the members that `by` flags; the scores of the others are
// empty.
std::vector<ScoresByMember> score_graphs(const Network& network, std::span<const float> flat,
                                         int members, const Dataset& dataset, GraphRange graphs,
                                         const ScoringMembers& by, const UnitBuilder& units,
                                         const ScoringOptions& options, JobContext& context);

// Like total_scores, for the members that `by` flags.
std::int64_t total_scores(const Dataset& dataset, int members, const ScoringMembers& by,
                          std::int64_t most_rows);

}  // namespace tpudist
