#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launch/sweep/sweep_folder.hpp"

namespace tpudist {

// The runs of a sweep: one line per run of the first stage (its values, seed and members), one line
// per stage with its number of runs, and outlook_text.
std::string plan_table(const SweepRecord& record);

// A few lines on what a sweep can show with its numbers of trainings and model families. First: the
// difference between variants, in standard deviations between trainings, that the test of
// `sweep collect` finds in 8 of 10 sweeps (detectable_shift). Then, if the graphs are known: the
// difference that a t test of two variants can show for other families. Empty for one variant.
std::string outlook_text(const SweepRecord& record);

// "5 of 12 runs have finished, about 4:10 of training left", one run after another, by the steps of
// each stage. Counts the largest possible number of runs of later stages that are not known yet.
// `known`: seconds of finished runs, by id; how_far adds the missing ones.
std::string how_far(const SweepFolder& folder, std::map<std::string, double>& known);

// A line for each stale later stage (SweepFolder::stale_reason), and SweepFolder::data_fault.
std::string stale_lines(const SweepFolder& folder);

// The runs of a sweep by state: a line with counts for each stage, how_far, then a line for each
// run that is running, stopped or failed: its variant and process, or its error.
std::string status_table(const SweepFolder& folder);

// The next command: to train the remaining runs, to train failed runs again, to take back a stale
// choice, or else to look at the results. Empty while data are at fault (SweepFolder::data_fault).
// `collected`: the results were just printed.
std::string next_command(const SweepFolder& folder, bool collected = false);

// Whether a run has ended.
bool has_results(const SweepFolder& folder);

// The results of the runs that have ended. Each stage has one table for each group of variants that
// may be compared, and a line for each run. The tables show the mean of members of each variant
// with the standard deviation between its trainings (VariantSummary). At the end: the chosen
// variants, the results of their fresh seeds, and any choice that the tables no longer support.
// Does not depend on where or in which order runs were trained. Throws DataError when a result
// belongs to another run.
std::string collect_table(const SweepFolder& folder);
// The runs as CSV (RFC 4180) with a header, and as JSON with the summaries.
std::string collect_csv(const SweepFolder& folder);
nlohmann::json collect_json(const SweepFolder& folder);

}  // namespace tpudist
