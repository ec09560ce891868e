#pragma once

#include <string>
#include <vector>

#include "results/report/variant_rankings.hpp"
#include "results/scores/result_set.hpp"
#include "results/scores/score_matrix.hpp"
#include "statistics/intervals/run_score_table.hpp"

namespace tpudist {

// Runs of one variant on one collection, which differ only by seeds and members, with their common
// results.
struct ReportedVariant {
  std::string title;  // variant and collection, as far as variants differ by them
  std::string collection;
  std::string metric;    // "Kendall tau" or "tile score"
  std::string file_end;  // distinguishes this variant's files from others: "" or "-2"
  int colour = 1;        // in all charts: 1 to 6; 0 (grey): none of its own
  std::vector<RunRecord> runs;
  ScoreMatrix members,
      out_of_fold;  // without rows if there are none, or runs cannot be compared
  // [graphs][trainings] scores of trainings: all members of one pair of seeds, in one run or in
  // several. `valid` and `held_out` (out of fold) are means over the members that never saw the
  // graph; variants are compared by them. `together` is their combined ranking of validation
  // graphs.
  RunScoreTable valid, held_out, together;
  VariantRankings rankings;
  std::vector<std::string> notes;  // why some of this is missing

  const std::string& name() const { return title.empty() ? runs.front().variant : title; }
};

// The input of all sections.
struct ReportInput {
  ResultSet results;
  // In the order of their first runs; if there are too many for the charts, the best come first.
  std::vector<ReportedVariant> variants;
  std::vector<std::string> collections;  // in the order of their first runs
  std::vector<std::string> notes;        // trainings that were given twice, one line each
  // Number of variants with charts of their own; the tables have all.
  std::size_t shown() const;
  bool several() const { return variants.size() > 1; }
};

// Groups runs and reads their predictions, graph by graph; `ceilings` as for rank_variant. A
// training that is given twice counts once, and `notes` says so.
ReportInput report_input(ResultSet results, bool ceilings);

}  // namespace tpudist
