#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// What a member of a run reached. Scores are the collection's main metric (Kendall tau or tile score),
// the mean over graphs; nothing where there are no such graphs, or none were scored.
struct MemberResult {
  int number = 0;  // SweepRun::first_member + its place in the run
  bool failed = false;
  std::optional<double> valid, out_of_fold;
  // Of how many graphs these are the means; -1: unknown, of a result of an older version.
  int valid_graphs = -1, out_of_fold_graphs = -1;
};

// The mean over all graphs that these members scored, each weighted by its number of graphs: of members
// of different folds the mean over graphs, and no mean of fold means. Where a number is unknown all
// members count alike. Members that failed, or have no graph, do not count; nothing where another one has
// no score, or none is left. `valid`: of the validation split, else out of fold.
std::optional<double> mean_of_members(std::span<const MemberResult> members, bool valid);

// How a run of a sweep ended. A run that was stopped or killed has none.
struct RunResult {
  std::string id;
  bool finished = false;  // else it failed with `error`
  std::string error;
  int exit_code = 0;
  std::string parameters;  // the hash of the trained parameters
  std::int64_t steps = 0;
  double train_seconds = 0;
  std::string host;
  // Of the data that it was trained on, as in SweepRun; empty: unknown.
  std::string train_data, valid_data;
  std::vector<MemberResult> members;

  // mean_of_members of its own members.
  std::optional<double> valid() const;
  std::optional<double> out_of_fold() const;
};

void write_result(const std::filesystem::path& path, const RunResult& result);
// Nothing when there is no such file. Throws DataError when it is damaged.
std::optional<RunResult> read_result(const std::filesystem::path& path);

// The members' scores from a run's scores.json; the members of a run without one have none.
std::vector<MemberResult> read_member_results(const std::filesystem::path& scores, int first_member,
                                              int members);

}  // namespace tpudist
