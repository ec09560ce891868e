#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tpudist {

// One compared item, such as "data" or "step 20", and the value of each run.
struct ComparedThing {
  std::string what, a, b;
  std::string verdict;  // "equal", "not compared", or how they differ
};

// The differences between two runs. Plain data.
struct RunDifference {
  bool equal = false;
  // "equal: ...", or the first logged step and field that differ; then, on separate lines, what may
  // have caused the difference.
  std::string verdict;
  std::vector<ComparedThing> things;
  std::vector<std::string> faults;  // what could not be read, one line each
};

// Compares the contents of two run folders exactly: settings that influence the numbers, hashes of
// data and folds, values that both logged at a step, and the state in checkpoints of the same step.
// Matches members by number. Ignores what only one run logged or kept, but a run that ended earlier
// counts as different. Throws ConfigError when a folder holds no run. Throws DataError when nothing
// differs but something is damaged, or when there is nothing to compare.
RunDifference compare_runs(const std::filesystem::path& a, const std::filesystem::path& b);

// The verdict, and the compared items as an aligned table.
std::string run_difference_text(const RunDifference& difference);

}  // namespace tpudist
