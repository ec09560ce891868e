#include "train/loop/evaluation_forecast.hpp"

#include <fmt/format.h>

#include <string_view>

#include "core/numbers.hpp"
#include "train/loop/run_predictions.hpp"

namespace tpudist {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12;

std::string cost_text(const ScoringCost& cost, std::string_view members, double step_operations) {
  std::string text =
      fmt::format("{} rows ({} distinct) of {} graphs x {}: {}", format_count(cost.rows),
                  format_count(cost.distinct), cost.graphs, members, format_operations(cost.flop));
  if (step_operations > 0)
    text += fmt::format(", as much as {:.0f} steps", cost.flop / step_operations);
  return text;
}

}  // namespace

std::string format_operations(double operations) {
  return operations < kTera ? fmt::format("{:.3g} GFLOP", operations / kGiga)
                            : fmt::format("{:.4g} TFLOP", operations / kTera);
}

EvaluationCosts evaluation_costs(const TrainingSetup& setup, const ScoringSession* valid,
                                 JobContext& context) {
  const Experiment& experiment = setup.experiment;
  const TrainConfig& train = experiment.train;
  const EnsembleConfig& ensemble = experiment.ensemble;
  EvaluationCosts costs;
  if (experiment.predictions.wanted) costs.predictions = predictions_cost(setup, context);
  if (!valid) return costs;
  const auto cost = [&](std::int64_t most_rows) {
    // If members train on the split, each graph is scored only by those that hold out its fold.
    const int members = ensemble.trains_on_valid()
                            ? (ensemble.members + ensemble.folds - 1) / ensemble.folds
                            : ensemble.members;
    return valid->cost(members, most_rows);
  };
  if (evaluations_after(experiment, 0) > 0) costs.each = cost(train.evaluate_rows);
  if (train.last_evaluation == LastEvaluation::sampled) costs.last = cost(train.evaluate_rows);
  if (train.last_evaluation == LastEvaluation::all) costs.last = cost(0);
  return costs;
}

std::int64_t evaluations_after(const Experiment& experiment, std::int64_t done) {
  const std::int64_t every = experiment.train.evaluate_every;
  if (every <= 0 || experiment.train.steps <= done) return 0;
  return (experiment.train.steps - 1) / every - done / every;  // the last step has its own
                                                               // evaluation
}

std::string evaluation_text(const Experiment& experiment, const EvaluationCosts& costs,
                            bool has_graphs, double step_operations) {
  const TrainConfig& train = experiment.train;
  const std::string held_out = "the members that did not train on them";
  const std::string members = experiment.ensemble.trains_on_valid()
                                  ? held_out
                                  : fmt::format("{} members", experiment.ensemble.members);
  std::string text = "evaluation\n";
  if (costs.predictions)
    text += fmt::format("  predictions  {}\n",
                        cost_text(*costs.predictions, held_out, step_operations));
  if (!has_graphs) return text + "  none         the validation split has no graphs\n";
  if (costs.each) {
    text += fmt::format("  every {:<6} {}\n", train.evaluate_every,
                        cost_text(*costs.each, members, step_operations));
  }
  if (!costs.last) return text + "  at the end   none (train.last_evaluation)\n";
  return text + fmt::format("  at the end   {}{}\n",
                            cost_text(*costs.last, members, step_operations),
                            train.last_evaluation == LastEvaluation::all
                                ? "; train.last_evaluation: sampled or none takes less"
                                : "");
}

}  // namespace tpudist
