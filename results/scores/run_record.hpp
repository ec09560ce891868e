#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config_record.hpp"
#include "results/records/learning_curves.hpp"
#include "results/records/predictions_file.hpp"
#include "results/records/run_result.hpp"
#include "results/scores/member_scores.hpp"

namespace tpudist {

// A further key among a run's settings: the hash of the weights at train.init_from.
inline constexpr const char* kInitWeights = "train.init_weights";

// The content of a run folder, or of a prediction file alone. Missing parts are empty. Unreadable
// parts are empty and named in `faults`.
struct RunRecord {
  std::filesystem::path path;  // of the folder, or of the file
  std::string name;            // of the experiment
  int variants = 0;            // of its sweep, if the run was named by SWEEP:VARIANT
  std::string label;           // distinguishes it from the other runs read with it
  std::string variant;         // label of its variant in a sweep, else the experiment's name
  int index = -1;              // in a sweep, else -1
  bool baseline = false;       // whether its sweep compares the chosen variant with this run's
  RunState state = RunState::finished;
  std::vector<std::string> faults;  // one line each

  std::string collection;
  std::int64_t init_seed = 0, order_seed = 0;
  int first_member = 0, members = 0;
  int folds = 0;  // member number n holds out fold n mod folds; 0: members hold nothing out
  std::int64_t steps = 0;           // planned steps; 0: unknown
  std::vector<ConfigEntry> config;  // config.yaml, and kInitWeights where known; empty: none

  LearningCurves curves;
  // Predictions of this run alone, for uses that need every score; null if there are none.
  std::shared_ptr<const PredictionsFile> predictions;
  std::optional<PredictedRun> hashes;  // of settings, variant, folds and parameters
  std::optional<MemberScores> scores;  // from the predictions, else from scores.json
  std::string error;                   // why it failed

  // The value of a key of config.yaml; empty if the file lacks the key.
  std::string setting(std::string_view key) const;
  // The same for a text, without the quotes of YAML.
  std::string text(std::string_view key) const;
};

// "seed 3", or "seeds 3/4" if the seeds of parameters and of order differ.
std::string seeds_text(std::int64_t init, std::int64_t order);

// Calls `read` and appends the error that it throws to `faults`.
void keep_fault(std::vector<std::string>& faults, const std::function<void()>& read);
// Whether the file exists; false also if that cannot be seen.
bool is_there(const std::filesystem::path& path);

// Reads the folder of a run, as far as its files are there and whole. Throws ConfigError when there
// is no run at all.
RunRecord read_run_folder(const std::filesystem::path& folder);
// Reads a prediction file of a single run. Throws DataError, IoError, and ConfigError for a file of
// several runs.
RunRecord read_predictions_record(const std::filesystem::path& path);

}  // namespace tpudist
