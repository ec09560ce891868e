#pragma once

#include <vector>

#include "train/units/training_setup.hpp"

namespace tpudist {

// The slates of a unit that are computed at a time: all of them, or the first chunk of a single
// one.
std::vector<SlateRows> computed_together(const Experiment& experiment,
                                         std::vector<SlateRows> slates);

// The unit with the most nodes x configurations, among those of the first steps and a slate of the
// largest graph. A pure function of the setup.
std::vector<SlateRows> largest_unit(const TrainingSetup& setup);

}  // namespace tpudist
