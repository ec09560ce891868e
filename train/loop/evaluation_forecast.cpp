#include "train/loop/evaluation_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "core/aligned.hpp"
#include "core/numbers.hpp"
#include "data/shards/shard_reader.hpp"
#include "train/loop/run_predictions.hpp"
#include "train/scoring/scoring_blocks.hpp"

namespace tpudist {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12;

// Floating-point operations per second with which this process scores a few configurations of the
// validation split with parameters as they are before the first step.
double measured_speed(const TrainingSetup& setup, const Dataset& valid, const UnitBuilder& units) {
  constexpr std::int64_t kConfigs = 8;
  int graph = 0;  // the one with the median number of nodes
  std::vector<int> by_nodes(static_cast<std::size_t>(valid.size()));
  std::iota(by_nodes.begin(), by_nodes.end(), 0);
  std::ranges::sort(by_nodes, {}, [&](int g) { return std::pair(valid.graph(g).nodes, g); });
  graph = by_nodes[by_nodes.size() / 2];
  SlateRows rows{graph, {}};
  for (std::int64_t row = 0; row < std::min(kConfigs, valid.rows(graph)); ++row)
    rows.rows.push_back(row);
  const Unit unit = units.build(std::span(&rows, 1));
  AlignedFloats flat(static_cast<std::size_t>(setup.network.parameters().length()));
  setup.network.initialise(flat, setup.experiment.init_seed);
  const double operations = units.estimate(unit.slates).cost.forward;
  setup.network.scores(flat, 0, 1, unit.input);  // takes memory and warms the caches
  const auto begin = std::chrono::steady_clock::now();
  setup.network.scores(flat, 0, 1, unit.input);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return operations / std::max(seconds.count(), 1e-9);
}

// What the evaluations of an experiment cost.
class EvaluationForecast {
 public:
  EvaluationForecast(const TrainingSetup& setup, int ranks, double step_operations,
                     JobContext& context)
      : setup_(setup), ranks_(ranks), step_operations_(step_operations), context_(context) {}

  std::string text() const {
    const Experiment& experiment = setup_.experiment;
    DatasetOptions options = experiment.data.evaluation("valid");
    options.cache = CacheMode::stream;  // a few rows of each graph are read
    options.node_cache = {};
    if (list_graphs(options.shards, options.collection, "valid").empty())
      return "evaluation\n" + predictions_line(0) +
             "  none         the validation split has no graphs\n";
    const Dataset valid = Dataset::open(options, context_.pool);
    const UnitBuilder units(valid, setup_.network, experiment.plan);
    const TrainConfig& train = experiment.train;
    const double speed =
        context_.place.device < 0 ? ranks_ * measured_speed(setup_, valid, units) : 0;
    std::string text = "evaluation\n" + predictions_line(speed);
    if (train.evaluate_every > 0 && train.evaluate_every < train.steps) {
      text += fmt::format("  every {:<6} {}\n", train.evaluate_every,
                          line(valid, units, train.evaluate_rows, speed));
    }
    if (train.last_evaluation == LastEvaluation::none) {
      return text + "  at the end   none (train.last_evaluation)\n";
    }
    const bool all = train.last_evaluation == LastEvaluation::all;
    text += fmt::format("  at the end   {}{}\n",
                        line(valid, units, all ? 0 : train.evaluate_rows, speed),
                        all ? "; train.last_evaluation: sampled or none takes less" : "");
    return text;
  }

 private:
  std::string predictions_line(double speed) const {
    if (!setup_.experiment.predictions.wanted) return "";
    const ScoringCost cost = predictions_cost(setup_, context_.pool);
    return fmt::format("  predictions  {}\n",
                       cost_text(cost, "the members that did not train on them", speed));
  }

  std::string line(const Dataset& valid, const UnitBuilder& units, std::int64_t most_rows,
                   double speed) const {
    const EnsembleConfig& ensemble = setup_.experiment.ensemble;
    const auto cost = [&](int members) {
      return scoring_cost(units, valid, members, most_rows, setup_.experiment.evaluate_block,
                          context_.pool);
    };
    if (!ensemble.trains_on_valid())
      return cost_text(cost(ensemble.members), fmt::format("{} members", ensemble.members), speed);
    // Members of a run hold out their folds in turn.
    const int holding_out = (ensemble.members + ensemble.folds - 1) / ensemble.folds;
    return cost_text(cost(holding_out), "the members that did not train on them", speed);
  }

  std::string cost_text(const ScoringCost& cost, std::string_view members, double speed) const {
    std::string text = fmt::format("{} rows ({} distinct) of {} graphs x {}: {}",
                                   format_count(cost.rows), format_count(cost.distinct),
                                   cost.graphs, members, format_operations(cost.flop));
    if (step_operations_ > 0)
      text += fmt::format(", as much as {:.0f} steps", cost.flop / step_operations_);
    if (speed > 0) {
      text += fmt::format("; about {} on {} rank{} with {} thread{} like this one's",
                          format_seconds(cost.flop / speed), ranks_, ranks_ == 1 ? "" : "s",
                          context_.pool.threads(), context_.pool.threads() == 1 ? "" : "s");
    }
    return text;
  }

  const TrainingSetup& setup_;
  const int ranks_;
  const double step_operations_;
  JobContext& context_;
};

}  // namespace

std::string format_operations(double operations) {
  return operations < kTera ? fmt::format("{:.3g} GFLOP", operations / kGiga)
                            : fmt::format("{:.4g} TFLOP", operations / kTera);
}

std::string evaluation_forecast(const TrainingSetup& setup, int ranks, double step_operations,
                                JobContext& context) {
  return EvaluationForecast(setup, ranks, step_operations, context).text();
}

}  // namespace tpudist
