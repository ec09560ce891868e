#pragma once

#include <string>
#include <vector>

#include "results/report/variant_rankings.hpp"
#include "results/scores/result_set.hpp"
#include "results/scores/score_matrix.hpp"
#include "statistics/intervals/run_score_table.hpp"

namespace tpudist {

// The runs of one variant on one collection, with their common results. The runs differ only by
// seeds and members.
struct ReportedVariant {
  std::string title;  // variant and collection, if variants differ in them
  std::string collection;
  std::string metric;    // "Kendall tau" or "tile score"
  std::string file_end;  // distinguishes this variant's files from others: "" or "-2"
  int colour = 1;        // in all charts: 1 to 6; 0: grey, without a colour of its own
  std::vector<RunRecord> runs;
  ScoreMatrix members,
      out_of_fold;  // without rows if there are none, or runs cannot be compared
  // [graphs][trainings] scores of trainings: all members of one pair of seeds, in one run or in
  // several. `valid` and `out_of_fold`, by which variants are compared, are means over the members
  // that never saw the graph. `together` is the score of the members' combined ranking of
  // validation graphs.
  RunScoreTable valid, together;
  VariantRankings rankings;
  std::vector<std::string> notes;  // reasons for missing parts

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
// training that is given twice counts once; `notes` names it.
ReportInput report_input(ResultSet results, bool ceilings);

}  // namespace tpudist
