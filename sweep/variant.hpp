#pragma once

#include <string>
#include <vector>

#include "sweep/sweep_file.hpp"

namespace tpudist {

// One way to train in a sweep: an experiment and values for the swept keys.
struct Variant {
  int experiment = 0;                 // index into SweepFile::experiments
  std::vector<std::string> settings;  // key=YAML, in the order of the sweep file; may be empty
  bool operator==(const Variant&) const = default;
};

// All variants of a sweep, experiment after experiment: the grid of all values, the last key
// varying fastest, or the drawn variants, without duplicates.
std::vector<Variant> variants_of(const SweepFile& sweep);

// "nlp: optimizer.lr=0.001 batch.configs=32"; the experiment's name only where there are several.
std::string label_of(const Variant& variant, const SweepFile& sweep);

}  // namespace tpudist
