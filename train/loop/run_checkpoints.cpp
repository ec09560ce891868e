#include "train/loop/run_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <span>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/log.hpp"
#include "data/loading/fold_table.hpp"
#include "data/loading/metis_segments.hpp"
#include "dist/health/agreement.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/settings.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

using Kind = CheckpointQueue::Kind;

constexpr const char* kBestScore = "best_score";  // the score for which best.h5 was kept

std::string newest_text(std::int64_t step) {
  return step < 0 ? "none is on the disk"
                  : fmt::format("the newest on the disk is of step {}", step);
}

// If an older checkpoint cannot be removed, the new one is still valid.
void prune(const std::filesystem::path& folder, int keep, std::int64_t written, FileSystem& files) {
  try {
    prune_checkpoints(folder, keep, written, files);
  } catch (const IoError& error) {
    spdlog::warn("{}", error.what());
  }
}

// The recorded fold of each graph of the table; nothing without a readable file.
std::optional<std::vector<int>> recorded(const RunFolder& run, const FoldTable& folds) {
  if (folds.folds == 0 || !std::filesystem::exists(run.folds())) return std::nullopt;
  try {
    const FoldFile file = FoldFile::read(run.folds());
    return file.folds_of(folds.graphs, file.folds());
  } catch (const Error& error) {
    spdlog::warn("{}", error.what());
    return std::nullopt;
  }
}

// "resnet50 in fold 0 then, in 1 now (and 3 more graphs)"; empty if all are equal.
std::string differences(const std::vector<int>& then, const FoldTable& now) {
  std::string first;
  int more = -1;
  for (std::size_t g = 0; g < then.size(); ++g) {
    const FoldedGraph& graph = now.graphs[g];
    if (then[g] == graph.fold) continue;
    if (++more == 0)
      first = fmt::format("{} in fold {} then, in {} now", graph.name, then[g], graph.fold);
  }
  return more > 0 ? fmt::format("{} (and {} more)", first, more) : first;
}

}  // namespace

RunCheckpoints::RunCheckpoints(const TrainingSetup& setup, const RunFolder& run,
                               const RunClaim* claim, JobContext& context)
    : experiment_(setup.experiment),
      setup_(setup),
      run_(run),
      claim_(claim),
      context_(context),
      fold_hash_(training_folds_hash(setup.folds, setup.data)),
      segment_hash_(segment_hash(setup.data)),
      metis_hash_(metis_hash(setup.experiment.data.reduction)),
      queue_(setup.network.parameters(), context.files, [&context] { context.advance(); }) {}

bool RunCheckpoints::restore(TrainingState& state) {
  std::optional<CheckpointFile> file;
  run_on_first_rank(context_.world, [&] {
    file = choose();
    if (file) read_best_score();
  });
  share(file);
  if (!file) return false;
  const std::filesystem::path& path = file->path();
  run_on_all_ranks(context_.world, [&] {
    state.restore(*file, experiment_, setup_.data.selection_hash(), setup_.network.parameters(),
                  segment_hash_);
    if (scored_other_rows(file->summary())) state.forget_best_scores();
    require_same_folds(file->summary(), path, run_, setup_.folds, setup_.data);
  });
  newest_ = state.step;
  if (context_.watchdog) context_.watchdog->remember_checkpoint(path);
  if (root()) spdlog::info("resuming at step {} from {}", state.step, path.string());
  return true;
}

// Sends the file that rank 0 has read, if any, to the other ranks. Collective.
void RunCheckpoints::share(std::optional<CheckpointFile>& file) const {
  std::int64_t known[] = {file ? std::ssize(file->bytes()) : -1, file ? file->summary().step : -1};
  context_.world.broadcast(std::span<std::int64_t>(known), 0);
  if (known[0] < 0) return;
  std::vector<std::byte> bytes;
  run_on_all_ranks(context_.world, [&] {
    if (!root()) bytes.resize(known[0]);
  });
  // Rank 0 only sends: nothing changes its bytes.
  const std::span<const std::byte> sent = root() ? file->bytes() : bytes;
  context_.world.broadcast(std::span(const_cast<std::byte*>(sent.data()), sent.size()), 0);
  run_on_all_ranks(context_.world, [&] {
    if (!root()) file.emplace(checkpoint_path(run_.checkpoints(), known[1]), std::move(bytes));
  });
}

// The newest complete checkpoint, nothing when there is none. Only on rank 0. With the lock, sets
// damaged files aside.
std::optional<CheckpointFile> RunCheckpoints::choose() const {
  auto newest =
      newest_checkpoint(run_.checkpoints(), claim_ ? DamagedFile::set_aside : DamagedFile::skip);
  if (newest) return newest;
  if (claim_ ? claim_->resumes() : RunFolder::exists(run_.path())) {
    require_settings_of_the_folder();
    require_recorded_folds(run_, setup_.folds);
  }
  spdlog::warn("{}: no checkpoint to resume from; starting from step 0", run_.path().string());
  return std::nullopt;
}

// For a run without a checkpoint only config.yaml records its settings.
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

// Whether the checkpoint's best scores are of other rows than the evaluations from here on.
bool RunCheckpoints::scored_other_rows(const CheckpointSummary& checkpoint) const {
  const auto rows = [](const std::vector<ConfigEntry>& entries) {
    const auto at = std::ranges::find(entries, "train.evaluate_rows", &ConfigEntry::key);
    return at == entries.end() ? std::string() : at->value;
  };
  return rows(checkpoint.entries()) != rows(experiment_.entries);
}

// Only on rank 0.
void RunCheckpoints::read_best_score() {
  const auto path = best_checkpoint_path(run_.checkpoints());
  if (!std::filesystem::exists(path)) return;
  try {
    const auto file = open_if_whole(path);
    if (!file) return claim_ ? set_aside(path) : void();
    if (scored_other_rows(file->summary())) return;
    const Checkpoint best = file->load(setup_.network.parameters(), /*segment_scores=*/false);
    best_score_ = kept_score_ = best.numbers.at(kBestScore);
  } catch (const std::exception& error) {
    spdlog::warn("{}: of no use: {}", path.string(), error.what());
  }
}

void RunCheckpoints::fill(Checkpoint& copy, const TrainingState& state) const {
  state.copy_to(copy, experiment_, setup_.data.selection_hash());
  copy.fold_hash = fold_hash_;
  copy.segment_hash = segment_hash_;
  copy.metis_hash = metis_hash_;
}

void RunCheckpoints::save(const TrainingState& state) {
  context_.enter("checkpoint", state.step);
  const TraceSpan span(context_.trace, "checkpoint", state.step);
  run_on_first_rank(context_.world, [&] {
    Checkpoint& copy = queue_.copy(Kind::regular);
    log_failures();
    fill(copy, state);
    queue_.write(Kind::regular, checkpoint_path(run_.checkpoints(), state.step),
                 [&files = context_.files, folder = run_.checkpoints(), step = state.step,
                  keep = experiment_.train.keep_checkpoints] { prune(folder, keep, step, files); });
  });
  share_results();
}

void RunCheckpoints::save_if_best(const TrainingState& state, double score) {
  context_.enter("checkpoint", state.step);
  const TraceSpan span(context_.trace, "checkpoint", state.step);
  run_on_first_rank(context_.world, [&] {
    if (!std::isfinite(score)) return;
    Checkpoint& copy = queue_.copy(Kind::best);
    log_failures();
    if (score <= best_score_) return;
    fill(copy, state);
    copy.segment_scores = {};  // training continues only from regular checkpoints
    copy.numbers[kBestScore] = best_score_ = score;
    queue_.write(Kind::best, best_checkpoint_path(run_.checkpoints()));
  });
}

// Records what was written, and returns the first error; "" if there was none. Only on rank 0.
std::string RunCheckpoints::take_results() {
  std::string errors;
  for (const CheckpointQueue::Result& result : queue_.take_results()) {
    if (!result.error.empty()) {
      errors += (errors.empty() ? "" : "; ") + result.error;
      if (result.kind == Kind::best) best_score_ = kept_score_;
      continue;
    }
    seconds_ = std::max(seconds_, result.seconds);
    if (result.kind == Kind::best) {
      kept_score_ = best_score_;
    } else {
      newest_ = result.step;
      if (context_.watchdog) context_.watchdog->remember_checkpoint(result.path);
    }
  }
  return errors;
}

void RunCheckpoints::log_failures() {
  if (!root()) return;
  if (const std::string errors = take_results(); !errors.empty()) {
    spdlog::warn("{}; training goes on, and the next checkpoint is tried when it is due; {}",
                 errors, newest_text(newest_));
  }
}

void RunCheckpoints::wait() {
  run_on_first_rank(context_.world, [&] {
    queue_.wait();
    if (const std::string errors = take_results(); !errors.empty()) {
      throw IoError(
          fmt::format("{}; this was the last attempt of the run, and {}: see that the folder "
                      "can be written, and go on with --resume",
                      errors, newest_text(newest_)));
    }
  });
  share_results();
}

// Sends the other ranks what their watchdogs and forecasts need.
void RunCheckpoints::share_results() {
  std::int64_t known[] = {newest_, static_cast<std::int64_t>(1e6 * seconds_)};
  context_.world.broadcast(std::span<std::int64_t>(known), 0);
  if (root() || known[0] < 0) return;
  seconds_ = 1e-6 * static_cast<double>(known[1]);
  if (newest_ == known[0]) return;
  newest_ = known[0];
  if (context_.watchdog)
    context_.watchdog->remember_checkpoint(checkpoint_path(run_.checkpoints(), newest_));
}

void record_folds(const RunFolder& run, const FoldTable& folds) {
  if (folds.folds == 0) return;
  const auto then = recorded(run, folds);
  if (then && differences(*then, folds).empty()) return;
  write_file_atomically(run.folds(), fold_file_text(folds));
}

void require_recorded_folds(const RunFolder& run, const FoldTable& folds) {
  const auto then = recorded(run, folds);
  const std::string changes = then ? differences(*then, folds) : "";
  if (changes.empty()) return;
  throw ConfigError(
      fmt::format("{}: the run has other folds: {}; give ensemble.fold_file={} to train with the "
                  "folds of then, or start a new run with --run-dir",
                  run.folds().string(), changes, run.folds().string()));
}

void require_same_folds(const CheckpointSummary& checkpoint, const std::filesystem::path& path,
                        const RunFolder& run, const FoldTable& folds, const Dataset& training) {
  if (checkpoint.fold_hash == training_folds_hash(folds, training)) return;
  require_recorded_folds(run, folds);
  throw ConfigError(
      fmt::format("{}: was trained with other folds; give the folds of then with "
                  "ensemble.fold_file, or start a new run with --run-dir",
                  path.string()));
}

}  // namespace tpudist
