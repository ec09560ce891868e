#include "train/loop/trainer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "data/loading/prefetcher.hpp"
#include "dist/agreement.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/state/checkpoint_folder.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;

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

// One training run: everything that is made once, and the loop over the steps.
class TrainingRun {
 public:
  TrainingRun(const Experiment& experiment, const RunFolder& run, JobContext& context)
      : experiment_(experiment),
        run_(run),
        context_(context),
        setup_(experiment, experiment.data.training(), context.pool, context.place.device,
               context.world.size()),
        builder_(setup_.steps_of(context.world.rank())),
        step_(experiment, setup_.network, context),
        state_(experiment, setup_.network) {
    open_validation();
    require_same_data();
  }

  TrainOutcome run(bool resume, const std::function<bool()>& stop_requested) {
    start(resume);
    Prefetcher<StepWork> work(state_.step, experiment_.train.prefetch, 1,
                              [this](std::int64_t step) { return builder_.build(step); });
    context_.progress.start("train", experiment_.train.steps - state_.step, "steps");
    TrainOutcome outcome;
    while (state_.step < experiment_.train.steps) {
      if (agreed(stop_requested())) {
        outcome.stopped = true;
        break;
      }
      one_step(work);
    }
    context_.progress.finish();
    save();
    if (!outcome.stopped) outcome.evaluation = last_evaluation();
    outcome.steps = state_.step;
    outcome.train_seconds = state_.train_seconds;
    outcome.wait_seconds = wait_seconds_;
    outcome.parameter_hash =
        parameter_hash(std::vector<float>(state_.flat.begin(), state_.flat.end()),
                       experiment_.ensemble.members, setup_.network.parameters());
    require_equal_on_all_ranks(context_.world, outcome.parameter_hash, "the trained parameters");
    return outcome;
  }

 private:
  bool root() const { return context_.world.rank() == 0; }

  void open_validation() {
    const DatasetOptions options = experiment_.data.evaluation("valid");
    if (list_graphs(options.shards, options.collection, "valid").empty()) return;
    valid_.emplace(Dataset::open(options, context_.pool));
    valid_units_.emplace(*valid_, setup_.network, experiment_.plan);
  }

  void require_same_data() {
    const AgreedValue data[] = {
        {"training data", to_hex(setup_.data.selection_hash())},
        {"validation data", valid_ ? to_hex(valid_->selection_hash()) : "none"}};
    require_agreement(context_.world, data, "give all ranks the same shards (data.shards)");
  }

  // What each rank has read, or made, by itself.
  void require_same_start() {
    const AgreedValue start[] = {
        {"first step", fmt::format("{}", state_.step + 1)},
        {"parameters to start from", to_hex(hash64(std::as_bytes(std::span(state_.flat))))}};
    require_agreement(context_.world, start, "give all ranks the same run folder (--run-dir)");
  }

  void start(bool resume) {
    if (resume && state_.restore(run_, experiment_, setup_.data.selection_hash(),
                                 setup_.network.parameters())) {
      if (root()) spdlog::info("resuming at step {}", state_.step);
    } else {
      state_.initialise(experiment_, setup_.network);
    }
    require_same_start();
    if (root()) run_.rewind_metrics(state_.step);
  }

  bool agreed(bool mine) {
    if (context_.world.size() == 1) return mine;
    std::int64_t flag = mine;
    context_.world.all_reduce(std::span(&flag, 1), ReduceOp::max);
    return flag != 0;
  }

  void one_step(Prefetcher<StepWork>& work) {
    const auto begin = Clock::now();
    const double waited = work.waited().count();
    const StepWork next = work.next();
    const double wait = work.waited().count() - waited;
    const StepResult result = step_.run(next, state_);
    const double seconds = seconds_since(begin);
    state_.train_seconds += seconds;
    wait_seconds_ += wait;
    report(result, seconds, wait);
    const TrainConfig& train = experiment_.train;
    const bool last = state_.step == train.steps;
    if (!last && valid_ && train.evaluate_every > 0 && state_.step % train.evaluate_every == 0) {
      evaluate(train.evaluate_rows);
    }
    if (!last && train.checkpoint_every > 0 && state_.step % train.checkpoint_every == 0) save();
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
                         {"loss", finite_or_null(result.loss)},
                         {"norm", finite_or_null(result.norm)},
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

  // Scores the validation split on at most `rows` rows a graph (0 = all), and keeps each member's
  // best.
  Evaluation evaluate(std::int64_t rows) {
    const Evaluation evaluation =
        evaluate_members(setup_.network, state_.flat, state_.alive(), *valid_, *valid_units_,
                         {experiment_.evaluate_block, rows}, context_);
    const std::vector<double> means = evaluation.member_means();
    for (std::size_t m = 0; m < means.size(); ++m) {
      if (std::isfinite(means[m]) && !(means[m] <= state_.best_score[m])) {
        state_.best_score[m] = means[m];
        state_.best_step[m] = state_.step;
      }
    }
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

  void save() {
    run_on_all_ranks(context_.world, [&] {
      if (!root()) return;
      save_checkpoint(checkpoint_path(run_.checkpoints(), state_.step),
                      state_.checkpoint(experiment_, setup_.data.selection_hash()),
                      setup_.network.parameters());
      prune_checkpoints(run_.checkpoints(), experiment_.train.keep_checkpoints);
    });
  }

  const Experiment& experiment_;
  const RunFolder& run_;
  JobContext& context_;
  const TrainingSetup setup_;
  const StepBuilder builder_;
  TrainingStep step_;
  TrainingState state_;
  std::optional<Dataset> valid_;
  std::optional<UnitBuilder> valid_units_;
  double wait_seconds_ = 0;
};

}  // namespace

TrainOutcome train(const Experiment& experiment, const RunFolder& run, bool resume,
                   JobContext& context, const std::function<bool()>& stop_requested) {
  return TrainingRun(experiment, run, context).run(resume, stop_requested);
}

}  // namespace tpudist
