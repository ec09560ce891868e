#include "sweep/records/sweep_files.hpp"

#include <fmt/format.h>

namespace tpudist {

bool SweepFiles::exists() const {
  std::error_code ignored;
  return std::filesystem::exists(record_file(), ignored);
}

std::filesystem::path SweepFiles::stage_file(int stage) const {
  return path_ / fmt::format("stage-{}.json", stage);
}

std::filesystem::path SweepFiles::result_file(const SweepRun& run) const {
  return path_ / "results" / (run.id + ".json");
}

std::optional<std::vector<SweepRun>> SweepFiles::stage_runs(const SweepRecord& record,
                                                            int stage) const {
  if (stage == 0) return record.runs;
  if (!std::filesystem::exists(stage_file(stage))) return std::nullopt;
  return read_stage_runs(stage_file(stage));
}

std::optional<RunResult> SweepFiles::result(const SweepRun& run) const {
  return read_result(result_file(run));
}

}  // namespace tpudist
