#pragma once

#include <string>

#include "statistics/score_intervals.hpp"

namespace tpudist {

// Intervals as printed, each one line without a newline.

// "0.7219 (0.6748 to 0.7691, t(2))"
std::string interval_text(const Interval& interval);

// "other families, other runs     0.7219 (0.5463 to 0.8976, t(2.51)); 7 graphs of 4 families, 3
// runs"; for one run "other families, this model only".
std::string family_line(const FamilyInterval& found);

// "these graphs, other runs      0.7219 (0.6748 to 0.7691, t(2)); " and `source`, such as "3 runs".
std::string run_line(const Interval& interval, const std::string& source);

// "other members of this training  0.7219 (0.6748 to 0.7691, t(4)); " and `source`: the same for a
// single training.
std::string member_line(const Interval& interval, const std::string& source);

// What the interval of a single training does not cover, and how to get one that does.
std::string one_training_line();

// "an interval from 4 families cannot see failures rarer than about 1 in 4"
std::string rare_failure_line(int families);

// Why an interval is missing.
std::string no_run_line(const std::string& reason);
std::string no_family_line();

}  // namespace tpudist
