#pragma once

#include <vector>

#include "train/units/training_setup.hpp"

namespace tpudist {

// What is computed at a time of a unit's slates: all of them, or the first chunk of a single one.
std::vector<SlateRows> computed_together(const Experiment& experiment,
                                         std::vector<SlateRows> slates);

// The unit with the most (nodes x configurations): of the first steps, or a slate of the largest
// graph. A pure function of the setup.
std::vector<SlateRows> largest_unit(const TrainingSetup& setup);

}  // namespace tpudist
