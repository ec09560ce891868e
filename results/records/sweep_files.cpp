#include "results/records/sweep_files.hpp"

#include <fmt/format.h>

#include <iterator>

#include "core/error.hpp"
#include "core/folder_lock.hpp"
#include "results/records/run_folder.hpp"

namespace tpudist {

bool SweepFiles::exists() const {
  std::error_code ignored;
  return std::filesystem::exists(record_file(), ignored);
}

std::optional<std::vector<SweepRun>> SweepFiles::stage_runs(const SweepRecord& record,
                                                            int stage) const {
  if (stage == 0) return record.runs;
  if (!std::filesystem::exists(stage_file(stage))) return std::nullopt;
  return read_stage_runs(stage_file(stage), record, stage);
}

std::optional<RunResult> SweepFiles::result(const SweepRun& run) const {
  std::optional<RunResult> result = read_result(result_file(run));
  if (!result) return result;
  const auto refuse = [&](const std::string& fault, const std::string& remedy) {
    throw DataError(fmt::format("{}: {}; remove it{}", result_file(run).string(), fault, remedy));
  };
  const std::string goes_on = ", and `tpudist sweep run` goes on with the run's checkpoint";
  if (result->id != run.id)
    refuse(fmt::format("is the result of run {} and not of {}", result->id, run.id), goes_on);
  if (const std::string changed = changed_input(run.inputs, result->inputs); !changed.empty())
    refuse(fmt::format("run {} was trained on other data than the sweep was expanded for ({})",
                       run.index, changed),
           fmt::format(" and the folder {}, and `tpudist sweep run` trains the run again",
                       run_folder(run).string()));
  if (!result->members.empty() && std::ssize(result->members) != run.members)
    refuse(fmt::format("has {} members, but run {} has {}", result->members.size(), run.index,
                       run.members),
           goes_on);
  return result;
}

RunState SweepFiles::state(const SweepRun& run, const std::optional<RunResult>& result) const {
  if (result) return result->finished ? RunState::finished : RunState::failed;
  if (lock_holder(claims(), run.id)) return RunState::running;
  std::error_code ignored;
  const bool begun =
      RunFolder::exists(run_folder(run)) && !std::filesystem::exists(retry_file(run), ignored);
  return begun ? RunState::stopped : RunState::waiting;
}

}  // namespace tpudist
