#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sweep/sweep_folder.hpp"

namespace tpudist {

// What a sweep trains: a line for each run of the first stage, with what it varies, its seed and its
// members, and a line for each stage with the number of its runs.
std::string plan_table(const SweepRecord& record);

// The runs of a sweep by state: a line with counts for each stage, then a line for each run that is
// running, stopped or failed, with its error.
std::string status_table(const SweepFolder& folder);

// What the runs that have ended reached: for each stage the mean of each variant over its seeds with the
// standard deviation between seeds, and a line for each run; at the end what was chosen, and what its
// fresh seeds reached. The same wherever and in whatever order the runs were trained.
std::string collect_table(const SweepFolder& folder);
// The runs as lines of a CSV (RFC 4180) with a header, and as JSON with the summaries.
std::string collect_csv(const SweepFolder& folder);
nlohmann::json collect_json(const SweepFolder& folder);

}  // namespace tpudist
