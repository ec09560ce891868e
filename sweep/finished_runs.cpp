#include "sweep/finished_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "core/log.hpp"
#include "sweep/sweep_folder.hpp"

namespace tpudist {

std::vector<std::filesystem::path> finished_runs(const std::filesystem::path& folder) {
  const SweepFolder sweep = SweepFolder::open(folder);
  int stage = static_cast<int>(sweep.record().stages.size()) - 1;
  while (!sweep.stage_runs(stage)) --stage;  // the first stage is always known
  if (sweep.record().choice != ChoiceScore::none &&
      !sweep.record().stages[static_cast<std::size_t>(stage)].confirms) {
    spdlog::warn("{}: nothing is chosen yet: these are the runs of all variants of \"{}\"",
                 folder.string(), sweep.record().stages[static_cast<std::size_t>(stage)].name);
  }
  std::vector<std::filesystem::path> finished;
  const std::vector<SweepRun> runs = sweep.stage_runs(stage).value();
  for (const SweepRun& run : runs) {
    const auto ended = sweep.result(run);
    if (ended && ended->finished) {
      finished.push_back(sweep.run_folder(run));
    } else {
      spdlog::warn("{}: run {} ({}) is left out: it has not finished", folder.string(), run.index,
                   run.id);
    }
  }
  if (finished.empty()) {
    throw ConfigError(fmt::format("{}: no run of \"{}\" has finished; see `tpudist sweep status`",
                                  folder.string(),
                                  sweep.record().stages[static_cast<std::size_t>(stage)].name));
  }
  return finished;
}

std::vector<std::filesystem::path> run_folders(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> folders;
  for (const auto& path : paths) {
    if (std::filesystem::exists(path / "sweep.json")) {
      std::ranges::move(finished_runs(path), std::back_inserter(folders));
    } else {
      folders.push_back(path);
    }
  }
  return folders;
}

}  // namespace tpudist
