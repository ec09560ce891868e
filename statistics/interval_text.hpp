#pragma once

#include <string>

#include "statistics/score_intervals.hpp"

namespace tpudist {

// Intervals as a reader meets them, each a line without its end.

// "0.7219 (0.6748 to 0.7691, t(2))"
std::string interval_text(const Interval& interval);

// "other families, other runs     0.7219 (0.5463 to 0.8976, t(2.51)); 7 graphs of 4 families, 3
// runs"; of one run "other families, this model only".
std::string family_line(const FamilyInterval& found);

// "these graphs, other runs      0.7219 (0.6748 to 0.7691, t(2)); " and `source`, such as "3 runs".
std::string run_line(const Interval& interval, const std::string& source);

// "other members of this training  0.7219 (0.6748 to 0.7691, t(4)); " and `source`: the same where
// there is but one training.
std::string member_line(const Interval& interval, const std::string& source);

// What such an interval does not say, and how to get one that does.
std::string one_training_line();

// "an interval from 4 families cannot see failures rarer than about 1 in 4"
std::string rare_failure_line(int families);

// Why there is no such interval.
std::string no_run_line(const std::string& reason);
std::string no_family_line();

}  // namespace tpudist
