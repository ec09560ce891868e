#pragma once

#include <filesystem>
#include <string>
#include <utility>

namespace tpudist {

// Compares the contents of two run folders exactly: settings that influence the numbers, hashes of
// data and folds, values that both logged at a step, and the state in checkpoints of the same step.
// Matches members by number. Ignores what only one run logged or kept, but a run that ended earlier
// counts as different. Throws ConfigError when a folder holds no run. Throws DataError when nothing
// differs but something is damaged, or when there is nothing to compare.
//
// Returns whether the runs are equal, and a text. First the verdict: "equal: ...", or the first
// logged step and field that differ and, on separate lines, what may have caused the difference.
// Then the compared items as an aligned table, with the value of each run and "equal", "not
// compared" or how they differ. Then what is damaged.
std::pair<bool, std::string> compare_runs(const std::filesystem::path& a,
                                          const std::filesystem::path& b);

}  // namespace tpudist
