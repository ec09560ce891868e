#pragma once

#include <string>

#include "records/sweep_record.hpp"

namespace tpudist {

// A few lines on what a sweep can show with its number of trainings and of model families. They
// give the smallest difference between two variants, in standard deviations between trainings, that
// a t test at 0.05 finds with probability 0.8 (statistics/intervals/power.hpp). The test has Holm's
// correction over all pairs of variants. The same for families where the graphs are known. Empty
// for one variant.
std::string outlook_text(const SweepRecord& record);

}  // namespace tpudist
