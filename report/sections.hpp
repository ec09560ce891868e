#pragma once

#include "report/report_input.hpp"
#include "report/report_section.hpp"

namespace tpudist {

// The sections of a report, each in a file of its own. Each says what is missing where it has nothing to
// show. They share this header because a report has all of them.

// Scores with their two intervals, and the runs with their conditions.
ReportSection summary_section(const ReportInput& input);
// Loss and validation score of all members against the training step.
ReportSection curves_section(const ReportInput& input);
// The score of every graph, with interval and noise ceiling.
ReportSection graphs_section(const ReportInput& input);
// Out-of-fold scores by seed and fold.
ReportSection folds_section(const ReportInput& input);
// How much of the differences are graphs, runs, and the rest.
ReportSection variance_section(const ReportInput& input);
// The score of ensembles of fewer members.
ReportSection sizes_section(const ReportInput& input);
// Predicted against measured rank of the best, the median and the worst graph.
ReportSection ranks_section(const ReportInput& input);
// What the fastest of the k configurations that are predicted to be fastest lacks to the fastest.
ReportSection slowdown_section(const ReportInput& input);
// Run times of graphs that look corrupted, by their order of measurement. Reads the shards that runs
// trained on.
ReportSection suspects_section(const ReportInput& input);
// Time of a step, and the share of it that waited for data.
ReportSection timing_section(const ReportInput& input);
// Settings and hashes.
ReportSection configuration_section(const ReportInput& input);

}  // namespace tpudist
