#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/folder_lock.hpp"

namespace tpudist {

// The folder of one run: config.yaml (resolved), metrics.jsonl, the same numbers for TensorBoard
// (events.out.tfevents.tpudist), checkpoints/, scores.json; folds.yaml if members hold graphs out,
// and predictions.h5 if requested. The class has only paths. Only the process that holds the run's
// RunClaim writes.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  // Throws ConfigError when `path` holds no run, IoError when it may not be read.
  static RunFolder open(const std::filesystem::path& path);
  // True when `path` holds a run: checkpoints, or config.yaml with metrics or a checkpoint folder.
  static bool exists(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path scores() const { return path_ / "scores.json"; }
  std::filesystem::path predictions() const { return path_ / "predictions.h5"; }
  std::filesystem::path folds() const { return path_ / "folds.yaml"; }
  // Ranks exchange their status here during training (RankFiles); removed afterwards.
  std::filesystem::path ranks() const { return path_ / "ranks"; }

  std::filesystem::path events() const { return path_ / "events.out.tfevents.tpudist"; }

  // Appends one line to metrics.jsonl and its numbers to the events. After an error neither file
  // has them. Throws IoError.
  void append_metrics(const nlohmann::json& record) const;
  // Drops the lines of steps after `step`, their events, and unreadable lines. A resumed run then
  // continues the files.
  void rewind_metrics(std::int64_t step) const;

 private:
  std::filesystem::path path_;
};

// The right of one process to write into a run's folder, acquired in two steps. The constructor
// refuses what can be refused at once. `begin` writes into the folder; call it after data and
// network have been opened. Under MPI only rank 0 has a claim.
class RunClaim {
 public:
  // Locks a folder that holds a run. Throws ConfigError when the folder holds a run and `resume` is
  // false, or when it holds other files (such as shards); Error when another process trains there.
  RunClaim(const std::filesystem::path& path, bool resume);

  // Whether there was a run to resume.
  bool resumes() const { return resumes_; }

  // Creates the folder if needed, locks it, and writes config.yaml (a resumed run: only if the
  // configuration differs). Throws as the constructor, and IoError.
  void begin(const std::string& resolved_yaml);

  // The folder's new path if somebody renamed it after `begin`; else "".
  std::filesystem::path new_folder() const { return lock_->new_folder(); }

 private:
  const RunFolder folder_;
  const bool resumes_;
  std::optional<FolderLock> lock_;
};

}  // namespace tpudist
