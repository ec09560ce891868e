#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/records/run_result.hpp"
#include "results/records/sweep_record.hpp"

namespace tpudist {

// The names and contents of the files in a sweep's folder. This class only reads, so it works while
// other processes train the sweep.
class SweepFiles {
 public:
  explicit SweepFiles(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  bool exists() const;
  std::filesystem::path record_file() const { return path_ / "sweep.json"; }
  std::filesystem::path stage_file(int stage) const {
    return path_ / ("stage-" + std::to_string(stage) + ".json");
  }
  std::filesystem::path claims() const { return path_ / "claims"; }
  std::filesystem::path run_folder(const SweepRun& run) const { return path_ / "runs" / run.id; }
  std::filesystem::path result_file(const SweepRun& run) const {
    return path_ / "results" / (run.id + ".json");
  }
  // The result of a failed run that is to be trained again, until that begins.
  std::filesystem::path retry_file(const SweepRun& run) const {
    return path_ / "results" / (run.id + ".retry");
  }

  // The following throw DataError, which names the file, when a file is damaged.
  SweepRecord record() const { return read_record(record_file()); }
  // The runs of a stage; nothing while they are not known.
  std::optional<std::vector<SweepRun>> stage_runs(const SweepRecord& record, int stage) const;
  std::optional<RunResult> result(const SweepRun& run) const;
  // The state of a run with this result. Takes no claim, so that users who may only read the folder
  // can call it.
  RunState state(const SweepRun& run, const std::optional<RunResult>& result) const;

 private:
  std::filesystem::path path_;
};

}  // namespace tpudist
