#pragma once

#include <string>
#include <vector>

#include "report/variant_rankings.hpp"
#include "results/result_set.hpp"
#include "results/score_matrix.hpp"

namespace tpudist {

// Runs of one variant on one collection, which differ by seeds and members only, with what is known of
// them together.
struct ReportedVariant {
  std::string title;  // variant and collection, as far as they differ between variants
  std::string collection;
  std::string metric;    // "Kendall tau" or "tile score"
  std::string file_end;  // tells files of this variant from those of others: "" or "-2"
  std::vector<RunRecord> runs;
  ScoreMatrix members,
      out_of_fold;  // without rows where there is nothing, or runs cannot be compared
  VariantRankings rankings;
  std::vector<std::string> notes;  // why something of this is not there
};

// What all sections are made of.
struct ReportInput {
  ResultSet results;
  std::vector<ReportedVariant> variants;  // in the order of their first runs
  // Of the variants that are shown in charts of their own; all stand in the tables.
  std::size_t shown() const;
};

// Groups runs and reads their predictions, graph by graph; `ceilings` as for rank_variant.
ReportInput report_input(ResultSet results, bool ceilings);

}  // namespace tpudist
