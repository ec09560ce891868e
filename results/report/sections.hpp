#pragma once

#include "results/report/report_input.hpp"
#include "results/report/report_section.hpp"

namespace tpudist {

// The sections of a report, each in its own file. A section without content says what is missing.
// One header declares all sections, because a report has all.

// Scores with their two intervals, and the runs with their states.
ReportSection summary_section(const ReportInput& input);
// Loss and validation score of all members by training step.
ReportSection curves_section(const ReportInput& input);
// The score of every graph, with interval and noise ceiling.
ReportSection graphs_section(const ReportInput& input);
// Out-of-fold scores by seed and fold.
ReportSection folds_section(const ReportInput& input);
// The shares of graphs, runs and the rest in the variance of scores.
ReportSection variance_section(const ReportInput& input);
// The score of ensembles of fewer members.
ReportSection sizes_section(const ReportInput& input);
// Predicted against measured rank of the best, the median and the worst graph.
ReportSection ranks_section(const ReportInput& input);
// Slowdown of the best of the k first-ranked configurations against the fastest configuration.
ReportSection slowdown_section(const ReportInput& input);
// Run times of graphs that look corrupted, judged by their order of measurement. Reads the shards
// on which runs trained.
ReportSection suspects_section(const ReportInput& input);
// Time of a step, and the share of it that waited for data.
ReportSection timing_section(const ReportInput& input);
// Settings and hashes.
ReportSection configuration_section(const ReportInput& input);

}  // namespace tpudist
