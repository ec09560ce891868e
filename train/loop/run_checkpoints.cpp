#include "train/loop/run_checkpoints.hpp"

#include <chrono>
#include <cmath>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/log.hpp"
#include "dist/agreement.hpp"
#include "train/loop/recorded_folds.hpp"
#include "train/state/checkpoint_folder.hpp"
#include "train/state/same_settings.hpp"
#include "train/units/folds.hpp"

namespace tpudist {
namespace {

constexpr const char* kBestScore = "best_score";  // the number in best.h5 that it was kept for

}  // namespace

RunCheckpoints::RunCheckpoints(const Experiment& experiment, const TrainingSetup& setup,
                               const RunFolder& run, const RunClaim* claim, JobContext& context)
    : experiment_(experiment), setup_(setup), run_(run), claim_(claim), context_(context) {}

bool RunCheckpoints::restore(TrainingState& state) {
  std::int64_t step = -1;
  run_on_all_ranks(context_.world, [&] {
    if (!root()) return;
    step = choose();
    if (step >= 0) read_best_score();
  });
  context_.world.broadcast(std::span(&step, 1), 0);
  if (step < 0) return false;
  const auto path = checkpoint_path(run_.checkpoints(), step);
  run_on_all_ranks(context_.world, [&] {
    state.restore(path, experiment_, setup_.data.selection_hash(), setup_.network.parameters());
    require_same_folds(read_checkpoint_summary(path), path, run_, setup_.folds, setup_.data);
  });
  if (context_.watchdog) context_.watchdog->remember_checkpoint(path);
  if (root()) spdlog::info("resuming at step {} from {}", state.step, path.string());
  return true;
}

// The step of the newest checkpoint that is whole, -1 when there is none. Only on rank 0: it holds the
// lock, so that damaged files can be set aside.
std::int64_t RunCheckpoints::choose() const {
  const auto newest = newest_checkpoint(run_.checkpoints(), DamagedFile::set_aside);
  if (newest) return read_checkpoint_summary(*newest).step;
  if (claim_->resumes()) {
    require_settings_of_the_folder();
    require_recorded_folds(run_, setup_.folds);
  }
  spdlog::warn("{}: no checkpoint to resume from; starting from step 0", run_.path().string());
  return -1;
}

// A run without a checkpoint has only its config.yaml to say what it was.
void RunCheckpoints::require_settings_of_the_folder() const {
  std::vector<ConfigEntry> entries;
  try {
    entries = read_resolved_entries(read_text_file(run_.config()), run_.config().string());
  } catch (const Error& error) {
    return spdlog::warn("{}; it is written again", error.what());
  }
  require_same_settings(entries, experiment_.entries, run_.config().string(),
                        "train with the settings of then, or start a new run with --run-dir");
}

// Only on rank 0.
void RunCheckpoints::read_best_score() {
  const auto path = best_checkpoint_path(run_.checkpoints());
  if (!std::filesystem::exists(path)) return;
  if (!is_whole(path)) return set_aside(path);
  try {
    const Checkpoint best = load_checkpoint(path, setup_.network.parameters());
    best_score_ = best.numbers.at(kBestScore);
  } catch (const std::exception& error) {
    spdlog::warn("{}: of no use: {}", path.string(), error.what());
  }
}

Checkpoint RunCheckpoints::checkpoint(const TrainingState& state) const {
  Checkpoint saved = state.checkpoint(experiment_, setup_.data.selection_hash());
  saved.fold_hash = training_folds_hash(setup_.folds, setup_.data);
  return saved;
}

double RunCheckpoints::save(const TrainingState& state) const {
  const auto begin = std::chrono::steady_clock::now();
  const auto path = checkpoint_path(run_.checkpoints(), state.step);
  context_.enter("checkpoint", state.step);
  const TraceSpan span(context_.trace, "checkpoint", state.step);
  run_on_all_ranks(context_.world, [&] {
    if (!root()) return;
    save_checkpoint(path, checkpoint(state), setup_.network.parameters());
    prune_checkpoints(run_.checkpoints(), experiment_.train.keep_checkpoints, state.step);
  });
  if (context_.watchdog) context_.watchdog->remember_checkpoint(path);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void RunCheckpoints::save_if_best(const TrainingState& state, double score) {
  context_.enter("checkpoint", state.step);
  const TraceSpan span(context_.trace, "checkpoint", state.step);
  run_on_all_ranks(context_.world, [&] {
    if (!root() || !std::isfinite(score) || score <= best_score_) return;
    best_score_ = score;
    Checkpoint best = checkpoint(state);
    best.numbers[kBestScore] = score;
    save_checkpoint(best_checkpoint_path(run_.checkpoints()), best, setup_.network.parameters());
  });
}

}  // namespace tpudist
