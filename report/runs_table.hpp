#pragma once

#include <string>

#include "report/report_input.hpp"
#include "report/report_section.hpp"

namespace tpudist {

// All runs with their scores, those of runs that still train so far, and their condition.
ReportFigure runs_figure(const ReportInput& input);

// The run with the highest score so far, where no run has final scores; empty where there is none.
std::string headline_so_far(const ReportInput& input);

}  // namespace tpudist
