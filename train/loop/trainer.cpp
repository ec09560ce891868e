#include "train/loop/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "data/loading/prefetcher.hpp"
#include "dist/agreement.hpp"
#include "ensemble/out_of_fold.hpp"
#include "ensemble/predictions_file.hpp"
#include "train/loop/largest_unit.hpp"
#include "train/loop/layer_report.hpp"
#include "train/loop/recorded_folds.hpp"
#include "train/loop/run_predictions.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/state/checkpoint_folder.hpp"
#include "train/state/run_folder.hpp"
#include "train/state/same_settings.hpp"
#include "train/units/feature_statistics.hpp"
#include "train/units/folds.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kBestScore = "best_score";  // the number in best.h5 that it was kept for

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// NaN has no place in JSON.
nlohmann::json finite_or_null(const std::vector<double>& values) {
  nlohmann::json list = nlohmann::json::array();
  for (double value : values)
    list.push_back(std::isfinite(value) ? nlohmann::json(value) : nlohmann::json());
  return list;
}

// The values of members that took a step, null for the others.
nlohmann::json of_stepped(const StepResult& result, const std::vector<double>& values) {
  nlohmann::json list = finite_or_null(values);
  for (std::size_t m = 0; m < values.size(); ++m) {
    if (!result.stepped[m]) list[m] = nullptr;
  }
  return list;
}

nlohmann::json to_json(const std::vector<EarlyStopped>& members) {
  nlohmann::json list = nlohmann::json::array();
  for (const EarlyStopped& stopped : members) {
    list.push_back({{"number", stopped.member},
                    {"step", stopped.step},
                    {"best_step", stopped.best_step},
                    {"best_score", finite_or_null({stopped.best_score})[0]},
                    {"best_score_is_optimistic", true}});
  }
  return list;
}

// One training run: everything that is made once, and the loop over the steps.
class TrainingRun {
 public:
  // `claim`: on rank 0 only.
  TrainingRun(const Experiment& experiment, const std::filesystem::path& run, RunClaim* claim,
              JobContext& context)
      : experiment_(experiment),
        run_(run),
        claim_(claim),
        context_(context),
        setup_(experiment, experiment.data.training(), context.pool, context.place.device,
               context.world.size(), context.world),
        builder_(setup_.steps_of(context.world.rank())),
        step_(experiment, setup_.network, context),
        state_(experiment, setup_.network) {
    open_validation();
    require_validation_to_stop_early();
    require_same_validation();
  }

  TrainOutcome run(bool resume, const std::function<bool()>& stop_requested) {
    start(resume);
    context_.progress.start("train", experiment_.train.steps - state_.step, "steps");
    TrainOutcome outcome;
    while (!is_done() && !outcome.stopped) outcome.stopped = !train_members(stop_requested);
    context_.progress.finish();
    save();
    if (!outcome.stopped) {
      outcome.evaluation = last_evaluation();
      write_scores(outcome, nullptr);
      predict(outcome);
    }
    outcome.steps = state_.step;
    outcome.failed = failed_members();
    outcome.stopped_early = stopped_members();
    outcome.train_seconds = state_.train_seconds;
    outcome.wait_seconds = wait_seconds_;
    outcome.parameter_hash =
        parameter_hash(std::vector<float>(state_.flat.begin(), state_.flat.end()),
                       experiment_.ensemble.members, setup_.network.parameters());
    require_equal_on_all_ranks(context_.world, outcome.parameter_hash, "the trained parameters");
    if (state_.average.is_kept()) {
      const AlignedFloats scored = state_.scored_weights();
      outcome.average_hash =
          parameter_hash(scored, experiment_.ensemble.members, setup_.network.parameters());
      require_equal_on_all_ranks(context_.world, *outcome.average_hash, "the averaged parameters");
    }
    return outcome;
  }

 private:
  bool root() const { return context_.world.rank() == 0; }

  bool is_done() const {
    return state_.step >= experiment_.train.steps ||
           std::ranges::none_of(state_.training(), std::identity());
  }

  // Takes steps until the run is done or a member has left it: what is prepared ahead is for those
  // that train. False when it was asked to stop.
  bool train_members(const std::function<bool()>& stop_requested) {
    const std::vector<bool> training = state_.training();
    Prefetcher<StepWork> work(state_.step, experiment_.train.prefetch, 1,
                              [&](std::int64_t step) { return builder_.build(step, training); });
    while (!is_done() && state_.training() == training) {
      const auto begin = Clock::now();
      const double waited = work.waited().count();
      std::optional<StepWork> next;
      std::exception_ptr error;
      try {
        next = work.next();
      } catch (const std::exception&) {
        error = std::current_exception();
      }
      if (!agree_to_go_on(stop_requested(), error)) return false;
      one_step(*next, begin, work.waited().count() - waited);
    }
    return true;
  }

  void open_validation() {
    const DatasetOptions options = experiment_.data.evaluation("valid");
    if (list_graphs(options.shards, options.collection, "valid").empty()) return;
    valid_.emplace(Dataset::open(options, context_.pool));
    valid_units_.emplace(*valid_, setup_.network, experiment_.plan);
  }

  void require_validation_to_stop_early() const {
    if (valid_ || experiment_.train.early_stop.patience == 0) return;
    throw ConfigError(
        "train.early_stop goes by scores on the validation split, which has no graphs; leave it "
        "out, or give data.include.valid and data.exclude.valid that keep some");
  }

  // The training data were compared when they were opened.
  void require_same_validation() {
    const AgreedValue data{"validation data", valid_ ? to_hex(valid_->selection_hash()) : "none"};
    require_agreement(context_.world, std::span(&data, 1),
                      "give all ranks the same shards (data.shards)");
  }

  // What each rank has read, or made, by itself.
  void require_same_start() {
    const AgreedValue start[] = {
        {"first step", fmt::format("{}", state_.step + 1)},
        {"parameters to start from", to_hex(hash64(std::as_bytes(std::span(state_.flat))))}};
    require_agreement(context_.world, start, "give all ranks the same run folder (--run-dir)");
  }

  void initialise() {
    state_.initialise(experiment_, setup_.network);
    if (!setup_.network.takes_statistics()) return;
    run_on_all_ranks(context_.world,
                     [&] { state_.set_statistics(setup_.network, member_statistics(setup_)); });
  }

  // Everything that can be refused is refused before the first write.
  void start(bool resume) {
    if (!resume || !restore()) initialise();
    stop_if_all_failed();
    require_same_start();
    run_on_all_ranks(context_.world, [&] {
      if (!root()) return;
      claim_->begin(experiment_.resolved_yaml);
      run_.rewind_metrics(state_.step);
      record_folds(run_, setup_.folds);
      log_layers();
    });
    for (const int fold : empty_folds(setup_.folds, setup_.data)) {
      if (root()) {
        spdlog::warn("fold {} has no training graph of {}: its members train on all of them", fold,
                     experiment_.data.collection.name);
      }
    }
  }

  void log_layers() const {
    std::vector<Slate> slates;
    for (const SlateRows& slate : largest_unit(setup_))
      slates.push_back(setup_.data.slate(slate.graph, slate.rows));
    const PlanComparison plans = setup_.units.compare(slates, edge_draw(experiment_, 0));
    spdlog::info("layers, and their rows in the largest unit against a dense plan's:");
    for (const std::string& line : layer_lines(setup_, plans)) spdlog::info("  {}", line);
  }

  // Rank 0 chooses the checkpoint, and all ranks take the same one. False when there is none.
  bool restore() {
    std::int64_t step = -1;
    run_on_all_ranks(context_.world, [&] {
      if (root()) step = choose_checkpoint();
    });
    context_.world.broadcast(std::span(&step, 1), 0);
    if (step < 0) return false;
    const auto path = checkpoint_path(run_.checkpoints(), step);
    run_on_all_ranks(context_.world, [&] {
      state_.restore(path, experiment_, setup_.data.selection_hash(), setup_.network.parameters());
      require_same_folds(read_checkpoint_summary(path), path, run_, setup_.folds, setup_.data);
    });
    if (root()) spdlog::info("resuming at step {} from {}", state_.step, path.string());
    for (int member : failed_members()) {
      if (root()) spdlog::warn("member {} failed before and stays left out", member);
    }
    return true;
  }

  // The step of the newest checkpoint that is whole, -1 when there is none. Only on rank 0: it holds
  // the lock, so that damaged files can be set aside.
  std::int64_t choose_checkpoint() {
    const auto newest = newest_checkpoint(run_.checkpoints(), DamagedFile::set_aside);
    if (newest) {
      read_best_score();
      return read_checkpoint_summary(*newest).step;
    }
    if (claim_->resumes()) {
      require_settings_of_the_folder();
      require_recorded_folds(run_, setup_.folds);
    }
    spdlog::warn("{}: no checkpoint to resume from; starting from step 0", run_.path().string());
    return -1;
  }

  // A run without a checkpoint has only its config.yaml to say what it was.
  void require_settings_of_the_folder() const {
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
  void read_best_score() {
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

  // Their numbers.
  std::vector<int> failed_members() const {
    std::vector<int> numbers;
    for (int m = 0; m < experiment_.ensemble.members; ++m) {
      if (state_.failed[static_cast<std::size_t>(m)])
        numbers.push_back(experiment_.ensemble.number_of(m));
    }
    return numbers;
  }

  std::vector<EarlyStopped> stopped_members() const {
    std::vector<EarlyStopped> members;
    for (std::size_t m = 0; m < state_.failed.size(); ++m) {
      if (!state_.early_stop.has_stopped(m)) continue;
      members.push_back({experiment_.ensemble.number_of(static_cast<int>(m)),
                         state_.early_stop.stopped_at[m], state_.best_step[m],
                         state_.best_score[m]});
    }
    return members;
  }

  // Nothing is saved: the checkpoints that are there are of healthy members.
  void stop_if_all_failed() const {
    if (!state_.all_failed()) return;
    throw Error(ErrorKind::failed,
                fmt::format("no member is left at step {}: loss or gradient of each of the {} was "
                            "not finite; try a smaller optimizer.lr, a schedule.warmup or an "
                            "optimizer.clip_norm",
                            state_.step, state_.failed.size()));
  }

  // One exchange at each step boundary. False when a rank is asked to stop. Throws on every rank when
  // one could not prepare its work, so that no rank waits in the step for one that never comes.
  bool agree_to_go_on(bool stops, const std::exception_ptr& error) {
    enum : std::int64_t { kGoOn, kStop, kError };
    std::int64_t state = error ? kError : stops ? kStop : kGoOn;
    if (context_.world.size() > 1) context_.world.all_reduce(std::span(&state, 1), ReduceOp::max);
    if (state == kError) {
      run_on_all_ranks(context_.world, [&] {
        if (error) std::rethrow_exception(error);
      });
    }
    return state == kGoOn;
  }

  void one_step(const StepWork& next, Clock::time_point begin, double wait) {
    const StepResult result = step_.run(next, state_);
    const double seconds = seconds_since(begin);
    state_.train_seconds += seconds;
    wait_seconds_ += wait;
    report(result, seconds, wait);
    stop_if_all_failed();
    const TrainConfig& train = experiment_.train;
    const bool last = state_.step == train.steps;
    if (!last && valid_ && train.evaluate_every > 0 && state_.step % train.evaluate_every == 0) {
      stop_members(evaluate(train.evaluate_rows));
    }
    if (!last && train.checkpoint_every > 0 && state_.step % train.checkpoint_every == 0) save();
  }

  // Lets members go that do not get better. Only the validation split counts, whose graphs no
  // member trains on. Rank 0 decides.
  void stop_members(const Evaluation& evaluation) {
    if (experiment_.train.early_stop.patience == 0) return;
    EarlyStop& early_stop = state_.early_stop;
    const std::vector<bool> before = state_.training();
    early_stop.take(evaluation.member_means(), before, state_.step);
    context_.world.broadcast(std::span(early_stop.best), 0);
    context_.world.broadcast(std::span(early_stop.waited), 0);
    context_.world.broadcast(std::span(early_stop.stopped_at), 0);
    for (const EarlyStopped& stopped : stopped_members()) {
      if (!root() || stopped.step != state_.step) continue;
      context_.progress.line(
          fmt::format("step {:>7}  member {} stops: no better score in {} evaluations", state_.step,
                      stopped.member, experiment_.train.early_stop.patience));
    }
  }

  void report(const StepResult& result, double seconds, double wait) {
    double loss = 0, norm = 0, count = 0;
    for (std::size_t m = 0; m < result.loss.size(); ++m) {
      if (!result.stepped[m]) continue;
      loss += result.loss[m], norm += result.norm[m], ++count;
    }
    if (count > 0) loss /= count, norm /= count;
    context_.progress.advance(1, fmt::format("loss {:.4f}", loss));
    if (!root() || state_.step % experiment_.train.log_every != 0) return;
    context_.progress.line(fmt::format(
        "step {:>7}/{}  loss {:>9.4f}  norm {:>9.3g}  lr {:.2e}  {}/step  wait {:.1f} %",
        state_.step, experiment_.train.steps, loss, norm, result.rate, format_seconds(seconds),
        100 * wait / std::max(seconds, 1e-9)));
    run_.append_metrics({{"kind", "step"},
                         {"step", state_.step},
                         {"loss", of_stepped(result, result.loss)},
                         {"norm", of_stepped(result, result.norm)},
                         {"rate", result.rate},
                         {"step_seconds", seconds},
                         {"wait_seconds", wait},
                         {"train_seconds", state_.train_seconds}});
  }

  std::optional<Evaluation> last_evaluation() {
    if (!valid_ || experiment_.train.last_evaluation == LastEvaluation::none) return std::nullopt;
    const std::int64_t rows = experiment_.train.last_evaluation == LastEvaluation::sampled
                                  ? experiment_.train.evaluate_rows
                                  : 0;
    return evaluate(rows);
  }

  // Only rank 0 writes. `out_of_fold`: null where nothing was predicted.
  void write_scores(const TrainOutcome& outcome, const nlohmann::json& out_of_fold) const {
    run_on_all_ranks(context_.world, [&] {
      if (!root() || (!outcome.evaluation && out_of_fold.is_null())) return;
      nlohmann::json scores =
          outcome.evaluation ? evaluation_json(*outcome.evaluation) : nlohmann::json::object();
      if (outcome.evaluation && experiment_.train.early_stop.patience > 0)
        scores["stopped_early"] = to_json(stopped_members());
      if (!out_of_fold.is_null()) scores["out_of_fold"] = out_of_fold;
      write_file_atomically(run_.scores(), scores.dump(2) + "\n");
    });
  }

  // Predictions, and how good those of held-out training graphs are, from the file as it is written.
  void predict(TrainOutcome& outcome) {
    if (!experiment_.predictions.wanted) return;
    const AlignedFloats weights = state_.scored_weights();
    const std::optional<PredictionsHeader> header =
        write_predictions(run_.predictions(), setup_,
                          {weights, state_.alive(), state_.step, run_.metrics()}, context_);
    if (!header) {
      if (root()) spdlog::warn("no predictions: there are no folds, and no validation graphs");
      return;
    }
    nlohmann::json out_of_fold;
    run_on_all_ranks(context_.world, [&] {
      if (!root()) return;
      const PredictionsFile file(run_.predictions());
      outcome.out_of_fold = out_of_fold_scores(file);
      if (!outcome.out_of_fold.empty())
        out_of_fold = out_of_fold_json(file.header(), outcome.out_of_fold);
    });
    if (root()) spdlog::info("wrote {}", run_.predictions().string());
    write_scores(outcome, out_of_fold);
  }

  // Scores the validation split on at most `rows` rows a graph (0 = all), and keeps each member's
  // best.
  Evaluation evaluate(std::int64_t rows) {
    Evaluation evaluation =
        evaluate_members(setup_.network, state_.scored_weights(), state_.alive(), *valid_,
                         *valid_units_, {experiment_.evaluate_block, rows}, context_);
    evaluation.names = member_names(experiment_);
    const std::vector<double> means = evaluation.member_means();
    for (std::size_t m = 0; m < means.size(); ++m) {
      if (std::isfinite(means[m]) && !(means[m] <= state_.best_score[m])) {
        state_.best_score[m] = means[m];
        state_.best_step[m] = state_.step;
      }
    }
    run_on_all_ranks(context_.world, [&] {
      if (root()) save_if_best(evaluation.ensemble_mean());
    });
    if (!root()) return evaluation;
    std::string members;
    for (double mean : means) members += fmt::format(" {:.4f}", mean);
    context_.progress.line(fmt::format(
        "step {:>7}  {} {} ensemble {:.4f}  members{}  after {} of training", state_.step,
        experiment_.data.collection.is_tile() ? "tile score" : "Kendall tau",
        rows > 0 ? fmt::format("(at most {} rows a graph)", rows) : "(all rows)",
        evaluation.ensemble_mean(), members, format_seconds(state_.train_seconds)));
    run_.append_metrics({{"kind", "evaluation"},
                         {"split", "valid"},
                         {"step", state_.step},
                         {"rows", rows},
                         {"members", finite_or_null(means)},
                         {"ensemble", finite_or_null({evaluation.ensemble_mean()})[0]},
                         {"train_seconds", state_.train_seconds}});
    return evaluation;
  }

  // Only on rank 0. A score equal to the best one so far does not replace it.
  void save_if_best(double score) {
    if (!std::isfinite(score) || score <= best_score_) return;
    best_score_ = score;
    Checkpoint best = checkpoint();
    best.numbers[kBestScore] = score;
    save_checkpoint(best_checkpoint_path(run_.checkpoints()), best, setup_.network.parameters());
  }

  Checkpoint checkpoint() const {
    Checkpoint saved = state_.checkpoint(experiment_, setup_.data.selection_hash());
    saved.fold_hash = training_folds_hash(setup_.folds, setup_.data);
    return saved;
  }

  void save() {
    run_on_all_ranks(context_.world, [&] {
      if (!root()) return;
      save_checkpoint(checkpoint_path(run_.checkpoints(), state_.step), checkpoint(),
                      setup_.network.parameters());
      prune_checkpoints(run_.checkpoints(), experiment_.train.keep_checkpoints, state_.step);
    });
  }

  const Experiment& experiment_;
  const RunFolder run_;
  RunClaim* const claim_;  // null but on rank 0
  JobContext& context_;
  const TrainingSetup setup_;
  const StepBuilder builder_;
  TrainingStep step_;
  TrainingState state_;
  std::optional<Dataset> valid_;
  std::optional<UnitBuilder> valid_units_;
  double wait_seconds_ = 0;
  double best_score_ = -std::numeric_limits<double>::infinity();  // of best.h5; on rank 0
};

}  // namespace

TrainOutcome train(const Experiment& experiment, const std::filesystem::path& run, bool resume,
                   JobContext& context, const std::function<bool()>& stop_requested) {
  std::optional<RunClaim> claim;
  run_on_all_ranks(context.world, [&] {
    if (context.world.rank() == 0) claim.emplace(run, resume);
  });
  return TrainingRun(experiment, run, claim ? &*claim : nullptr, context)
      .run(resume, stop_requested);
}

}  // namespace tpudist
