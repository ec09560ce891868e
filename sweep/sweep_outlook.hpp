#pragma once

#include <string>

#include "sweep/records/sweep_record.hpp"

namespace tpudist {

// What the numbers of trainings and of model families of a sweep can show at all, in a few lines: the
// least difference between two variants that a t test at 0.05, with Holm's correction over all pairs of
// variants, finds with probability 0.8 (statistics/power.hpp), in standard deviations between trainings;
// the same of families where the graphs are known. Empty where there is one variant.
std::string outlook_text(const SweepRecord& record);

}  // namespace tpudist
