#include "results/scores/run_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/folder_lock.hpp"
#include "core/hash.hpp"
#include "core/numbers.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// The whole number in a setting, perhaps in quotes ("5"); 0 if the setting is no whole number.
std::int64_t whole_number(std::string text) {
  std::erase(text, '"');
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The collection of this setting; for a list the name that merged_collection gives.
std::string collection_of(const std::string& setting) {
  ConfigDocument document = ConfigDocument::parse("collection: " + setting, "data.collection");
  return joined_name(document.root().text_set("collection", ""));
}

void read_config(RunRecord& run, const fs::path& path) {
  run.config = read_resolved_entries(read_text_file(path), path.string());
  run.name = run.variant = run.text("name");
  run.collection = collection_of(run.setting("data.collection"));
  run.init_seed = whole_number(run.setting("seed.init"));
  run.order_seed = whole_number(run.setting("seed.order"));
  run.first_member = static_cast<int>(whole_number(run.setting("ensemble.first_member")));
  run.members = static_cast<int>(whole_number(run.setting("ensemble.members")));
  run.folds = static_cast<int>(whole_number(run.setting("ensemble.folds")));
  run.steps = whole_number(run.setting("train.steps"));
}

void read_predictions(RunRecord& run, const fs::path& path) {
  auto file = std::make_shared<const PredictionsFile>(path);
  if (file->header().runs.size() != 1) {
    throw ConfigError(
        fmt::format("{}: holds the predictions of {} runs; give those of each run by itself",
                    path.string(), file->header().runs.size()));
  }
  run.scores = read_member_scores(*file);
  run.hashes = file->header().runs.front();
  run.folds = run.hashes->folds;
  run.predictions = std::move(file);
}

// The state that the folder alone shows; a sweep knows more.
RunState state_of(const RunRecord& run) {
  if (lock_holder(run.path)) return RunState::running;
  const fs::path last = run.path / "checkpoints" / fmt::format("step-{:09}.h5", run.steps);
  const bool scored = is_there(run.path / "scores.json") || is_there(run.path / "predictions.h5");
  const bool ended = run.steps > 0 && run.curves.last_step() >= run.steps;
  return scored || ended || (run.steps > 0 && is_there(last)) ? RunState::finished
                                                              : RunState::stopped;
}

}  // namespace

void keep_fault(std::vector<std::string>& faults, const std::function<void()>& read) {
  try {
    read();
  } catch (const std::exception& error) {
    faults.emplace_back(error.what());
  }
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string RunRecord::setting(std::string_view key) const {
  const auto at = std::ranges::find(config, key, &ConfigEntry::key);
  return at == config.end() ? std::string() : at->value;
}

std::string RunRecord::text(std::string_view key) const {
  ConfigDocument document = ConfigDocument::parse("value: " + setting(key), key);
  return document.root().text("value", "");
}

std::string seeds_text(std::int64_t init, std::int64_t order) {
  return init == order ? fmt::format("seed {}", init) : fmt::format("seeds {}/{}", init, order);
}

RunRecord read_run_folder(const fs::path& folder) {
  const fs::path config = folder / "config.yaml", metrics = folder / "metrics.jsonl",
                 scores = folder / "scores.json", predictions = folder / "predictions.h5";
  if (!is_there(config) && !is_there(metrics) && !is_there(predictions)) {
    throw ConfigError(fmt::format(
        "{}: no run here (there are neither config.yaml nor metrics.jsonl nor predictions.h5); "
        "give the folder that `tpudist train` or `tpudist sweep` wrote",
        folder.string()));
  }
  RunRecord run;
  run.path = folder;
  run.name = run.variant = folder.filename().string();
  if (is_there(config)) {
    keep_fault(run.faults, [&] { read_config(run, config); });
  } else {
    run.faults.push_back(fmt::format("{}: there is no such file", config.string()));
  }
  keep_fault(run.faults, [&] { run.curves = read_learning_curves(metrics); });
  if (run.curves.damaged_lines > 0) {
    run.faults.push_back(fmt::format("{}: passed over {}", metrics.string(),
                                     counted(run.curves.damaged_lines, "damaged line")));
  }
  if (is_there(predictions)) keep_fault(run.faults, [&] { read_predictions(run, predictions); });
  if (!run.scores && is_there(scores)) {
    keep_fault(run.faults, [&] {
      run.scores = read_member_scores_json(scores, run.collection, run.first_member);
    });
  }
  if (run.collection.empty() && run.scores) run.collection = run.scores->collection;
  if (!run.config.empty() && run.scores && run.scores->init_hash != 0)
    run.config.push_back({kInitWeights, to_hex(run.scores->init_hash), false});
  run.state = state_of(run);
  return run;
}

RunRecord read_predictions_record(const fs::path& path) {
  RunRecord run;
  run.path = path;
  read_predictions(run, path);
  const PredictedRun& predicted = *run.hashes;
  run.name = run.variant = predicted.name;
  run.collection = run.scores->collection;
  run.init_seed = predicted.init_seed;
  run.order_seed = predicted.order_seed;
  run.members = static_cast<int>(run.scores->members.size());
  run.first_member = run.scores->members.front().number;
  run.folds = predicted.folds;
  run.steps = predicted.step;
  return run;
}

}  // namespace tpudist
