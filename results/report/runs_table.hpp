#pragma once

#include <string>

#include "results/report/report_input.hpp"
#include "results/report/report_section.hpp"

namespace tpudist {

// All runs with their state and scores; a run in training has the scores so far.
ReportFigure runs_figure(const ReportInput& input);

// The run with the highest score so far, if no run has final scores; empty if there is none.
std::string headline_so_far(const ReportInput& input);

}  // namespace tpudist
