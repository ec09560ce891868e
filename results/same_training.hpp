#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "results/run_record.hpp"

namespace tpudist {

// Two records of one and the same training: one folder named twice, a link to it, or a copy.
struct SameTraining {
  std::size_t first = 0, second = 0;  // places in the list, first < second
  std::string why;                    // "equal parameters"
};

// Each run that is the same training as an earlier one, with the first such. Told by the real path of
// the folder, by the hash of the parameters that scored where both have one (predictions.h5,
// scores.json), else by seeds, the losses of all logged steps that both have, and their scores. Equal settings and seeds alone are no sign:
// weights may have been imported.
std::vector<SameTraining> same_trainings(std::span<const RunRecord> runs);

// What differs between two runs that ought to be of one variant: keys of config.yaml that decide the
// numbers, but for seeds and members, as "optimizer.lr: 0.001 -> 0.002". Empty where nothing does, or a
// run has no config.yaml.
std::vector<std::string> different_settings(const RunRecord& a, const RunRecord& b);

}  // namespace tpudist
