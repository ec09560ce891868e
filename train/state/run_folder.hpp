#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace tpudist {

// The folder of one training run: config.yaml (resolved), metrics.jsonl, checkpoints/, scores.json.
// Only rank 0 writes.
class RunFolder {
 public:
  // A new run: makes the folder and writes config.yaml. Throws ConfigError when it already holds a
  // run (resume it, or choose another folder).
  static RunFolder create(const std::filesystem::path& path, const std::string& resolved_yaml);
  // An existing run; throws ConfigError when there is no config.yaml.
  static RunFolder open(const std::filesystem::path& path);
  // True when `path` holds a run.
  static bool exists(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path scores() const { return path_ / "scores.json"; }

  // Appends one line.
  void append_metrics(const nlohmann::json& record) const;
  // Drops the lines of steps after `step` (and a torn last line), so that a resumed run continues
  // the file.
  void rewind_metrics(std::int64_t step) const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace tpudist
