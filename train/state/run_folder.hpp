#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/folder_lock.hpp"

namespace tpudist {

// The folder of one training run: config.yaml (resolved), metrics.jsonl, the same for TensorBoard
// (events.out.tfevents.tpudist), checkpoints/, scores.json, folds.yaml where members hold graphs out,
// and predictions.h5 where they are asked for.
// Plain paths; only the process that holds the run's RunClaim writes.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  // Throws ConfigError when `path` holds no run, IoError when one may not look into it.
  static RunFolder open(const std::filesystem::path& path);
  // True when `path` holds a run: checkpoints, or config.yaml with a folder for them or metrics.
  static bool exists(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path scores() const { return path_ / "scores.json"; }
  std::filesystem::path predictions() const { return path_ / "predictions.h5"; }
  std::filesystem::path folds() const { return path_ / "folds.yaml"; }
  // Where the ranks that train tell each other where they are (RankFiles); gone when they are done.
  std::filesystem::path ranks() const { return path_ / "ranks"; }

  std::filesystem::path events() const { return path_ / "events.out.tfevents.tpudist"; }

  // Appends one line, and its numbers to the events: both or, with an error, neither. Throws
  // DiskFullError where there is no room, and IoError.
  void append_metrics(const nlohmann::json& record) const;
  // Drops the lines of steps after `step` (and a torn last line), and their events, so that a
  // resumed run continues the files.
  void rewind_metrics(std::int64_t step) const;

 private:
  std::filesystem::path path_;
};

// The right of one process to write into a run's folder, in two steps: what can be refused is
// refused at once, and nothing is written into a new folder before `begin`, when data and network
// have turned out to be there. Under MPI rank 0 makes the only one.
class RunClaim {
 public:
  // Locks a folder that holds a run. Throws ConfigError when the folder holds a run and `resume` is
  // false, or when it holds something else (shards, other files); Error when another process trains
  // there.
  RunClaim(const std::filesystem::path& path, bool resume);

  // Whether there was a run to resume.
  bool resumes() const { return resumes_; }

  // Makes the folder if need be, locks it, and writes config.yaml, in a resumed run only if the
  // configuration differs from what is there. The same errors as above, and IoError.
  void begin(const std::string& resolved_yaml);

 private:
  const RunFolder folder_;
  const bool resumes_;
  std::optional<FolderLock> lock_;
};

}  // namespace tpudist
