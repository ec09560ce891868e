#pragma once

#include <string>

#include "results/records/sweep_record.hpp"

namespace tpudist {

// A few lines on what a sweep can show with its numbers of trainings and model families. First: the
// difference between variants, in standard deviations between trainings, that the test of
// `sweep collect` finds in 8 of 10 sweeps (detectable_shift). Then, if the graphs are known: the
// difference that a t test of two variants can show for other families. Empty for one variant.
std::string outlook_text(const SweepRecord& record);

}  // namespace tpudist
