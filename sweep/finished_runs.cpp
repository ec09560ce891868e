#include "sweep/finished_runs.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/log.hpp"
#include "sweep/sweep_folder.hpp"

namespace tpudist {

bool holds_sweep(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "sweep.json");
}

std::vector<std::filesystem::path> finished_runs(const std::filesystem::path& folder) {
  const SweepFolder sweep = SweepFolder::open(folder);
  int stage = static_cast<int>(sweep.record().stages.size()) - 1;
  while (!sweep.stage_runs(stage)) --stage;  // the first stage is always known
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

}  // namespace tpudist
