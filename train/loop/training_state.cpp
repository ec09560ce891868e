#include "train/loop/training_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "core/config/settings.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "train/experiment/same_settings.hpp"

namespace tpudist {

TrainingState::TrainingState(const Experiment& experiment, const Network& network)
    : flat(static_cast<std::size_t>(network.parameters().length()) *
           static_cast<std::size_t>(experiment.ensemble.members)),
      optimizer(experiment.optimizer, network.parameters(), experiment.ensemble.members),
      average(experiment.train.average, network.parameters().length(), experiment.ensemble.members),
      early_stop(experiment.train.early_stop, experiment.ensemble.members),
      bad_loss(experiment.train.bad_loss, experiment.ensemble.members) {
  const auto members = static_cast<std::size_t>(experiment.ensemble.members);
  failed.assign(members, 0);
  best_score.assign(members, std::numeric_limits<double>::quiet_NaN());
  best_step.assign(members, -1);
}

void TrainingState::initialise(const Experiment& experiment, const Network& network) {
  const auto length = static_cast<std::size_t>(network.parameters().length());
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
  for (std::size_t m = 0; m < statistics.size(); ++m)
    network.set_statistics(statistics[m], std::span(flat).subspan(m * length, length));
}

void TrainingState::copy_weights(SavedWeights& saved) const {
  const auto copy = [](const auto& from, auto& to) { to.assign(from.begin(), from.end()); };
  copy(flat, saved.parameters);
  copy(optimizer.first_moment(), saved.first_moment);
  copy(optimizer.second_moment(), saved.second_moment);
  copy(optimizer.steps(), saved.optimizer_steps);
  copy(average.values(), saved.average);
  copy(average.points(), saved.average_points);
}

void TrainingState::keep_roll_back() {
  if (bad_loss.config.policy != BadLossPolicy::roll_back) return;
  copy_weights(kept);
  roll_back_step = step;
}

void TrainingState::roll_back(std::size_t m) {
  if (roll_back_step < 0) throw Error(ErrorKind::failed, "nothing was kept to roll back to");
  const std::size_t length = flat.size() / failed.size();
  const auto give_back = [&](const auto& from, auto to, std::size_t width) {
    if (from.empty()) return;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(m * width), width,
                to.begin() + static_cast<std::ptrdiff_t>(m * width));
  };
  give_back(kept.parameters, std::span(flat), length);
  give_back(kept.first_moment, optimizer.first_moment(), length);
  give_back(kept.second_moment, optimizer.second_moment(), length);
  give_back(kept.optimizer_steps, optimizer.steps(), 1);
  give_back(kept.average, average.values(), length);
  give_back(kept.average_points, average.points(), 1);
}

void TrainingState::copy_to(Checkpoint& saved, const Experiment& experiment,
                            std::uint64_t selection_hash) const {
  saved.step = step;
  saved.config_hash = experiment.numbers_hash;
  saved.selection_hash = selection_hash;
  saved.config = experiment.resolved_yaml;
  saved.changed_keys = changed_keys(experiment.entries);
  saved.members = experiment.ensemble.members;
  copy_weights(saved);
  if (roll_back_step >= 0 && roll_back_step != step) {
    saved.roll_back = kept;
  } else {
    saved.roll_back.reset();
  }
  saved.numbers.clear();
  bad_loss.save(saved.numbers);
  if (early_stop.config.patience > 0) {
    saved.stop_best = early_stop.best;
    saved.stop_waited = early_stop.waited;
    saved.stopped_at = early_stop.stopped_at;
  }
  saved.best_score = best_score;
  saved.best_step = best_step;
  saved.failed = failed;
  saved.numbers["train_seconds"] = train_seconds;
}

void TrainingState::restore(const std::filesystem::path& path, const Experiment& experiment,
                            std::uint64_t selection_hash, const ParameterTable& table) {
  const CheckpointSummary summary = read_checkpoint_summary(path);
  require_same_settings(summary.entries(), experiment.entries, path.string(),
                        "train with the settings of then, or start a new run with --run-dir");
  if (summary.selection_hash != selection_hash) {
    throw ConfigError(fmt::format(
        "{}: was trained on other data (selection {} then, {} now); give data.shards as then, "
        "or start a new run with --run-dir",
        path.string(), to_hex(summary.selection_hash), to_hex(selection_hash)));
  }
  const Checkpoint saved = load_checkpoint(path, table);
  step = saved.step;
  std::copy(saved.parameters.begin(), saved.parameters.end(), flat.begin());
  std::copy(saved.first_moment.begin(), saved.first_moment.end(), optimizer.first_moment().begin());
  std::copy(saved.second_moment.begin(), saved.second_moment.end(),
            optimizer.second_moment().begin());
  std::copy(saved.optimizer_steps.begin(), saved.optimizer_steps.end(), optimizer.steps().begin());
  if (saved.average.size() != average.values().size()) {
    throw DataError(
        fmt::format("{}: does not hold the averages that train.average asks for", path.string()));
  }
  std::ranges::copy(saved.average, average.values().begin());
  std::ranges::copy(saved.average_points, average.points().begin());
  if (early_stop.config.patience > 0) {
    if (saved.stopped_at.empty()) {
      throw DataError(
          fmt::format("{}: does not hold what train.early_stop goes by", path.string()));
    }
    early_stop.best = saved.stop_best;
    early_stop.waited = saved.stop_waited;
    early_stop.stopped_at = saved.stopped_at;
  }
  best_score = saved.best_score;
  best_step = saved.best_step;
  failed = saved.failed;
  bad_loss.restore(saved.numbers);
  keep_roll_back();
  if (saved.roll_back && roll_back_step >= 0) {
    kept = *saved.roll_back;
    roll_back_step = 0;  // before this step; which step it was no longer matters
  }
  const auto seconds = saved.numbers.find("train_seconds");
  train_seconds = seconds == saved.numbers.end() ? 0 : seconds->second;
}

AlignedFloats TrainingState::scored_weights() const {
  return averaged_weights(flat, average.values(), average.points());
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

}  // namespace tpudist
