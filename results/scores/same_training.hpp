#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "results/scores/run_record.hpp"

namespace tpudist {

// Two records of the same training: one folder named twice, a link to it, or a copy.
struct SameTraining {
  std::size_t first = 0, second = 0;  // indices in the list, first < second
  std::string why;                    // "equal parameters"
};

// Each run that is the same training as an earlier run, with the first such run. Two runs are the
// same if they have one real path; if both have a hash of the scored parameters (predictions.h5,
// scores.json), if the hashes are equal; else by equal seeds, losses of all common logged steps,
// and scores. Equal settings and seeds do not suffice: weights may have been imported.
std::vector<SameTraining> same_trainings(std::span<const RunRecord> runs);

// The differences between two runs that should be of one variant: keys of config.yaml that
// influence the numbers, except seeds and members, as "optimizer.lr: 0.001 -> 0.002". Empty if
// there are none, or a run has no config.yaml.
std::vector<std::string> different_settings(const RunRecord& a, const RunRecord& b);

}  // namespace tpudist
