#pragma once

#include <string>
#include <vector>

#include "report/variant_rankings.hpp"
#include "results/result_set.hpp"
#include "results/score_matrix.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// Runs of one variant on one collection, which differ by seeds and members only, with what is known of
// them together.
struct ReportedVariant {
  std::string title;  // variant and collection, as far as they differ between variants
  std::string collection;
  std::string metric;    // "Kendall tau" or "tile score"
  std::string file_end;  // tells files of this variant from those of others: "" or "-2"
  int colour = 1;        // in all charts: 1 to 6; 0 (grey) for those that have none of their own
  std::vector<RunRecord> runs;
  ScoreMatrix members,
      out_of_fold;  // without rows where there is nothing, or runs cannot be compared
  // [graphs][trainings] scores of trainings: all members of one pair of seeds, in one run or in several.
  // `valid` and `held_out` (out of fold) are means over the members that never saw the graph: the
  // number that variants are compared by. `together` is their common ranking of validation graphs.
  RunScores valid, held_out, together;
  VariantRankings rankings;
  std::vector<std::string> notes;  // why something of this is not there

  const std::string& name() const { return title.empty() ? runs.front().variant : title; }
};

// What all sections are made of.
struct ReportInput {
  ResultSet results;
  // In the order of their first runs; where there are more than can be shown, the best come first.
  std::vector<ReportedVariant> variants;
  std::vector<std::string> collections;  // in the order of their first runs
  std::vector<std::string>
      notes;  // trainings that count once, runs of several rules; one line each
  // Of the variants that are shown in charts of their own; all stand in the tables.
  std::size_t shown() const;
  bool several() const { return variants.size() > 1; }
};

// Groups runs and reads their predictions, graph by graph; `ceilings` as for rank_variant. A training
// that is there twice counts once, and `notes` says so.
ReportInput report_input(ResultSet results, bool ceilings);

}  // namespace tpudist
