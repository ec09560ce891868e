#include "train/loop/training_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/means.hpp"
#include "core/process.hpp"
#include "core/random.hpp"
#include "results/records/initial_and_final_loss.hpp"
#include "results/records/settings.hpp"

namespace tpudist {
namespace {

// Calls visit(list of the state, list of the checkpoint) for each list that steps change.
template <typename Visit>
void visit_weights(auto& weights, auto& saved, const Visit& visit) {
  visit(std::span(weights.flat), saved.parameters);
  visit(weights.optimizer.first_moment(), saved.first_moment);
  visit(weights.optimizer.second_moment(), saved.second_moment);
  visit(weights.optimizer.steps(), saved.optimizer_steps);
  visit(weights.average.values(), saved.average);
  visit(weights.average.points(), saved.average_points);
}

// The same for each other list of members that a checkpoint keeps.
template <typename Visit>
void visit_members(auto& state, auto& saved, const Visit& visit) {
  visit(state.best_score, saved.best_score);
  visit(state.best_step, saved.best_step);
  visit(state.failed, saved.failed);
  if (state.early_stop.config.patience == 0) return;
  visit(state.early_stop.best, saved.stop_best);
  visit(state.early_stop.waited, saved.stop_waited);
  visit(state.early_stop.stopped_at, saved.stopped_at);
}

// Copies the state's list into the memory of the checkpoint's list.
constexpr auto kSave = [](const auto& own, auto& saved) { saved.assign(own.begin(), own.end()); };

}  // namespace

TrainingState::TrainingState(const TrainingSetup& setup)
    : TrainingState(setup.experiment, setup.network,
                    {setup.experiment.ensemble.members, cut_graphs(setup.data)}) {}

TrainingState::TrainingState(const Experiment& experiment, const Network& network,
                             SegmentTable segments)
    : early_stop(experiment.train.early_stop, experiment.ensemble.members),
      bad_loss(experiment.train.bad_loss, experiment.ensemble.members),
      segments(std::move(segments)) {
  const auto members = static_cast<std::size_t>(experiment.ensemble.members);
  const std::int64_t length = network.parameters().length();
  weights_ = std::make_unique<HostWeights>(
      HostWeights{AlignedFloats(static_cast<std::size_t>(length) * members),
                  {experiment.optimizer, network.parameters(), experiment.ensemble.members},
                  {experiment.train.average, length, experiment.ensemble.members}});
  if (network.device()) on_device_ = std::make_unique<DeviceWeights>(network, *weights_);
  failed.assign(members, 0);
  best_score.assign(members, kNone);
  best_step.assign(members, -1);
  losses = no_losses(experiment.ensemble.members);
}

void TrainingState::forget_best_scores() {
  std::ranges::fill(best_score, kNone);
  std::ranges::fill(best_step, -1);
}

const HostWeights& TrainingState::weights() const {
  if (on_device_) on_device_->bring_down();
  return *weights_;
}

HostWeights& TrainingState::change_weights() {
  if (on_device_) {
    on_device_->bring_down();
    on_device_->host_changes();
  }
  return *weights_;
}

void TrainingState::initialise(const Experiment& experiment, const Network& network) {
  const auto length = static_cast<std::size_t>(network.parameters().length());
  AlignedFloats& flat = change_weights().flat;
  for (int m = 0; m < experiment.ensemble.members; ++m) {
    const auto member = static_cast<std::uint64_t>(
        experiment.ensemble.vary_init ? experiment.ensemble.number_of(m) : 0);
    network.initialise(std::span(flat).subspan(static_cast<std::size_t>(m) * length, length),
                       mix_key({experiment.init_seed, member}));
  }
}

void TrainingState::set_statistics(const Network& network,
                                   const std::vector<FeatureStatistics>& statistics) {
  const auto length = static_cast<std::size_t>(network.parameters().length());
  AlignedFloats& flat = change_weights().flat;
  for (std::size_t m = 0; m < statistics.size(); ++m)
    network.set_statistics(statistics[m], std::span(flat).subspan(m * length, length));
}

void TrainingState::copy_to(Checkpoint& saved, const Experiment& experiment,
                            std::uint64_t selection_hash) const {
  saved.step = step;
  saved.config_hash = experiment.numbers_hash;
  saved.selection_hash = selection_hash;
  saved.config = experiment.resolved_yaml;
  saved.changed_keys = changed_keys(experiment.entries);
  saved.members = experiment.ensemble.members;
  visit_weights(weights(), saved, kSave);
  visit_members(*this, saved, kSave);
  kSave(losses, saved.losses);
  saved.init_hash = init_hash;
  kSave(segments.values(), saved.segment_scores);
  saved.numbers.clear();
  bad_loss.save(saved.numbers);
  saved.numbers["train_seconds"] = train_seconds;
}

void TrainingState::restore(const CheckpointFile& file, const Experiment& experiment,
                            std::uint64_t selection_hash, const ParameterTable& table,
                            std::optional<std::uint64_t> segment_hash) {
  const std::filesystem::path& path = file.path();
  const CheckpointSummary& summary = file.summary();
  require_same_settings(
      summary.entries(), experiment.entries, path.string(),
      fmt::format("train with the settings of then, or start a new run with --run-dir; to train "
                  "longer, add train.init_from={}",
                  shell_word(path.parent_path().parent_path().string())));
  if (summary.selection_hash != selection_hash) {
    throw ConfigError(fmt::format(
        "{}: was trained on other data (selection {} then, {} now); give data.shards as then, "
        "or start a new run with --run-dir",
        path.string(), to_hex(summary.selection_hash), to_hex(selection_hash)));
  }
  if (summary.segment_hash != segment_hash) {
    throw ConfigError(fmt::format(
        "{}: was trained on other segments of its graphs (segments {} then, {} now), as another "
        "version of METIS cuts them; give the METIS of then, or start a new run with --run-dir and "
        "data.segments.by=consecutive",
        path.string(), to_hex(summary.segment_hash.value_or(0)), to_hex(segment_hash.value_or(0))));
  }
  const Checkpoint saved = file.load(table);
  step = saved.step;
  if (saved.average.size() != weights().average.values().size()) {
    throw DataError(
        fmt::format("{}: does not hold the averages that train.average asks for", path.string()));
  }
  if (early_stop.config.patience > 0 && saved.stopped_at.empty()) {
    throw DataError(fmt::format("{}: does not hold what train.early_stop goes by", path.string()));
  }
  const auto take = [](auto&& own, const auto& from) { std::ranges::copy(from, own.begin()); };
  visit_weights(change_weights(), saved, take);
  visit_members(*this, saved, take);
  if (!segments.restore(saved.segment_scores)) {
    throw DataError(
        fmt::format("{}: does not hold the scores of the segments that data.segments cuts: {} "
                    "numbers and not {}",
                    path.string(), saved.segment_scores.size(), segments.values().size()));
  }
  losses = saved.losses;
  init_hash = saved.init_hash;
  bad_loss.restore(saved.numbers);
  const auto seconds = saved.numbers.find("train_seconds");
  train_seconds = seconds == saved.numbers.end() ? 0 : seconds->second;
}

AlignedFloats TrainingState::scored_weights() const {
  const auto& [flat, optimizer, average] = weights();
  return averaged_weights(flat, average.values(), average.points());
}

double TrainingState::checkpoint_bytes() const {
  return static_cast<double>(sizeof(float) *
                             (3 * weights_->flat.size() + segments.values().size()));
}

bool TrainingState::all_failed() const {
  return std::ranges::none_of(failed, [](int flag) { return flag == 0; });
}

std::vector<bool> TrainingState::training() const {
  std::vector<bool> result = alive();
  for (std::size_t m = 0; m < result.size(); ++m) {
    if (early_stop.has_stopped(m)) result[m] = false;
  }
  return result;
}

std::vector<bool> TrainingState::alive() const {
  std::vector<bool> result;
  for (int flag : failed) result.push_back(flag == 0);
  return result;
}

std::vector<int> failed_members(const EnsembleConfig& ensemble, const TrainingState& state) {
  std::vector<int> numbers;
  for (std::size_t m = 0; m < state.failed.size(); ++m) {
    if (state.failed[m]) numbers.push_back(ensemble.number_of(static_cast<int>(m)));
  }
  return numbers;
}

std::vector<EarlyStopped> stopped_members(const EnsembleConfig& ensemble,
                                          const TrainingState& state) {
  std::vector<EarlyStopped> members;
  for (std::size_t m = 0; m < state.failed.size(); ++m) {
    if (!state.early_stop.has_stopped(m)) continue;
    members.push_back({ensemble.number_of(static_cast<int>(m)), state.early_stop.stopped_at[m],
                       state.best_step[m], state.best_score[m]});
  }
  return members;
}

}  // namespace tpudist
