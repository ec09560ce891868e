#pragma once

#include <string>

#include "results/records/sweep_record.hpp"

namespace tpudist {

// A few lines on what a sweep can show with its number of trainings and of model families. They
// answer: how far must one variant stand from the others, in standard deviations between trainings,
// to be told from another one in 8 of 10 sweeps by the test of `sweep collect` (detectable_shift)?
// And what can a t test of two variants show for other families, where the graphs are known? Empty
// for one variant.
std::string outlook_text(const SweepRecord& record);

}  // namespace tpudist
