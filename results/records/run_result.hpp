#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

enum class RunState {
  waiting,   // of a sweep: not begun
  running,   // a process holds its lock
  stopped,   // stopped or killed before its last step; it can go on from its newest checkpoint
  failed,    // of a sweep: ended with an error; `sweep retry` makes it waiting again
  finished,  // all steps are done
};

std::string_view name_of(RunState state);

// Hashes of the inputs that decide the numbers of a sweep's run, by name: "data.train" and
// "data.valid" (Dataset::selection_hash of the training data and of the scored split), and, if the
// run has them, "ensemble.folds" (the fold of each graph) and "train.init_from" (the weights).
// Unknown inputs are left out.
using Inputs = std::map<std::string, std::string>;
// The name of the first input that is known on both sides and differs; empty if there is none.
std::string changed_input(const Inputs& then, const Inputs& now);

// How a run of a sweep ended. A run that was stopped or killed has no result.
struct RunResult {
  // The result of one member of a run. Scores are the collection's primary metric (Kendall tau or
  // tile score), averaged over graphs; nothing if there are no such graphs, or none was scored.
  struct Member {
    int number = 0;  // SweepRun::first_member + its index in the run
    bool failed = false;
    std::optional<double> valid, out_of_fold;
    int valid_graphs = -1, out_of_fold_graphs = -1;  // number of graphs in each mean; -1: unknown
  };

  std::string id;
  bool finished = false;  // otherwise it failed with `error`
  std::string error;
  int exit_code = 0;
  std::string parameters;  // the hash of the trained parameters
  std::int64_t steps = 0;
  double train_seconds = 0;
  std::string host;
  Inputs inputs;
  std::vector<Member> members;

  // mean_of_members of this run's members.
  std::optional<double> valid() const;
  std::optional<double> out_of_fold() const;
};

// The mean over all graphs that these members scored: a member's weight is its number of graphs.
// For members of different folds this is the mean over graphs, not over folds. If any number is
// unknown, all members have equal weights. Members that failed or have no graph are ignored.
// Nothing if another member has no score, or no member is left. `valid`: take the scores on the
// validation split, else those out of fold.
std::optional<double> mean_of_members(std::span<const RunResult::Member> members, bool valid);

void write_result(const std::filesystem::path& path, const RunResult& result);
// Nothing when the file does not exist. Throws DataError when it is damaged.
std::optional<RunResult> read_result(const std::filesystem::path& path);

}  // namespace tpudist
