#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sweep/sweep_folder.hpp"

namespace tpudist {

// What a sweep trains: a line for each run of the first stage, with what it varies, its seed and its
// members, a line for each stage with the number of its runs, and outlook_text.
std::string plan_table(const SweepRecord& record);

// The runs of a sweep by state: a line with counts for each stage, then a line for each run that is
// running, stopped or failed, with its error.
std::string status_table(const SweepFolder& folder);

// Whether a run has ended.
bool has_results(const SweepFolder& folder);

// What the runs that have ended reached: for each stage the mean of members of each variant with the
// standard deviation between its trainings (VariantSummary), a table for each group of variants that may be
// compared, and a line for each run; at the end what was chosen, what its fresh seeds reached, and
// where a choice is not what the table says now. The same wherever and in whatever order the runs
// were trained. Throws DataError where a result is not that of its run.
std::string collect_table(const SweepFolder& folder);
// The runs as lines of a CSV (RFC 4180) with a header, and as JSON with the summaries.
std::string collect_csv(const SweepFolder& folder);
nlohmann::json collect_json(const SweepFolder& folder);

}  // namespace tpudist
