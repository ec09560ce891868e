#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tpudist {

// What two runs have of one thing, such as "data" or "step 20".
struct ComparedThing {
  std::string what, a, b;
  std::string verdict;  // "equal", "not compared", or how they differ
};

// In what two runs differ. Plain data.
struct RunDifference {
  bool equal = false;
  // "equal: ...", or the first logged step and field that differ; then, on lines of their own, what
  // may have caused it.
  std::string verdict;
  std::vector<ComparedThing> things;
  std::vector<std::string> faults;  // what could not be read, one line each
};

// Compares what the folders of two runs hold: settings that decide the numbers, hashes of data and
// folds, the values that both logged at a step, and the state in checkpoints of the same step,
// exactly. Members are compared by their numbers. What only one run logged or kept is not compared,
// but a run that ended earlier differs. Throws ConfigError where a folder holds no run, and DataError
// where nothing differs but something is damaged, or where there is nothing to compare.
RunDifference compare_runs(const std::filesystem::path& a, const std::filesystem::path& b);

// The verdict, and the things as an aligned table.
std::string run_difference_text(const RunDifference& difference);

}  // namespace tpudist
