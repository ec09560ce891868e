// One training step, or the scoring of all runs, of one graph, as train/ does it. Prints one line
// of JSON; against_pyg.py runs it beside the same network in PyTorch Geometric.
//   step_bench tpudist-data layout:xla:default resnet_main_10904 --configs 32 --plan dense
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/prefetcher.hpp"
#include "core/process.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/losses/losses.hpp"
#include "models/plans/plan_cost.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Arguments {
  std::string shards, collection, graph;
  std::string model = "latenciaga_xla", plan = "auto", mode = "train", unit = "slates",
              loss = "clip";
  std::string precision = "fp32", directions = "forth", aggregation = "mean", engine = "auto";
  int configs = 10, slates = 1, members = 1, threads = 2, warm_up = 2, device = -1, prefetch = 4;
  std::int64_t steps = 20, block = 0, evaluate_every = 20;
  double seconds = 1e9, target = 0.74;
  std::uint64_t seed = 1;
  bool recompute = false;
};

std::shared_ptr<const SlateLoss> loss_of(const Arguments& arguments) {
  const double no_clip = std::numeric_limits<double>::infinity();
  SlateLoss loss = list_mle(arguments.loss == "no-clip" ? no_clip : 500);
  // Nobody knows that the loss ignores a shift, so that all rows go through the backward pass.
  if (arguments.loss == "opaque") {
    const auto evaluate = [known = loss](auto... arguments) -> SlateLoss::Value {
      return {known.evaluate(arguments...).loss, false};
    };
    loss = {evaluate, false};
  }
  return std::make_shared<SlateLoss>(std::move(loss));
}

// What experiments/xla.yaml and nlp.yaml say, for one graph.
Experiment experiment_of(const Arguments& arguments) {
  Experiment experiment;
  experiment.init_seed = experiment.order_seed = arguments.seed;
  experiment.data.shards = arguments.shards;
  experiment.data.collection = Collection::parse(arguments.collection);
  experiment.data.include = experiment.data.include_valid = {arguments.graph};
  experiment.batch.slates = arguments.slates;
  experiment.batch.configs = arguments.configs;
  if (arguments.unit == "graph") {
    experiment.batch.unit = UnitKind::graph;
    experiment.batch.unit_slates = arguments.slates;
  }
  experiment.network = NetworkConfig::preset(arguments.model);
  experiment.network.general = arguments.engine == "general";
  experiment.network.precision = precision_of(arguments.precision);
  std::vector<SageConfig> layers = experiment.network.sage_layers();
  for (SageConfig& layer : layers) {
    if (arguments.directions == "both")
      layer.mix.edge_kinds.push_back(EdgeKind::producer_to_consumer);
    if (arguments.aggregation == "max") layer.mix.aggregation = Aggregation::max;
  }
  experiment.network.set_sage(layers);
  experiment.plan = arguments.plan == "dense"     ? PlanMode::dense
                    : arguments.plan == "refined" ? PlanMode::refined
                                                  : PlanMode::automatic;
  experiment.loss = loss_of(arguments);
  experiment.optimizer.eps = 1e-6;
  experiment.optimizer.clip_norm = 100;
  experiment.optimizer.set_decay(ParameterGroup::output, 1e-4);
  experiment.train.steps = arguments.steps;
  experiment.train.recompute = arguments.recompute;
  experiment.train.prefetch = arguments.prefetch;
  experiment.evaluate_block.configs = arguments.block;
  experiment.ensemble.members = arguments.members;
  if (arguments.mode == "tau") {
    experiment.schedule.name = "multistep";
    experiment.schedule.at = {0.6, 0.7, 0.8, 0.9};
    experiment.schedule.factor = 0.316228;
  }
  return experiment;
}

void add_times(json& line, const std::string& name, std::vector<double> seconds) {
  if (seconds.empty()) return;
  std::sort(seconds.begin(), seconds.end());
  line[name + "_median"] = seconds[seconds.size() / 2];
  line[name + "_min"] = seconds.front();
  line[name + "_max"] = seconds.back();
}

class StepBench {
 public:
  StepBench(const Arguments& arguments, JobContext& context)
      : arguments_(arguments),
        experiment_(experiment_of(arguments)),
        context_(context),
        setup_(experiment_, options(), context.pool, arguments.device, 1, context.world),
        state_(setup_) {
    state_.initialise(experiment_, setup_.network);
  }

  json run() {
    json line = {{"mode", arguments_.mode},
                 {"graph", arguments_.graph},
                 {"nodes", setup_.data.graph(0).nodes},
                 {"edges", setup_.data.graph(0).edges},
                 {"model", arguments_.model},
                 {"plan", arguments_.plan},
                 {"precision", arguments_.precision},
                 {"device", arguments_.device},
                 {"members", arguments_.members},
                 {"threads", context_.pool.threads()}};
    if (arguments_.mode == "infer") {
      infer(line);
    } else if (arguments_.mode == "plan") {
      plan(line);
    } else {
      train(line);
    }
    line["peak_rss_mb"] = static_cast<double>(peak_resident_bytes()) * 1e-6;
    return line;
  }

 private:
  // Training draws distinct configurations, scoring sees every measured run.
  DatasetOptions options() const {
    return arguments_.mode == "infer" ? experiment_.data.evaluation("train")
                                      : experiment_.training_data();
  }

  void train(json& line) {
    if (arguments_.configs > setup_.data.rows(0)) {
      throw ConfigError(fmt::format("--configs {}: the graph has {} distinct configurations",
                                    arguments_.configs, setup_.data.rows(0)));
    }
    const StepBuilder builder = setup_.steps_of(0);
    TrainingStep step(experiment_, setup_.network, context_);
    const bool to_target = arguments_.mode == "tau";
    const int warm_up = to_target ? 0 : arguments_.warm_up;
    std::vector<double> seconds, planning, losses, rates, work_gflop;
    json taus = json::array();
    double total = 0;
    // As in training: a loader thread plans the next steps meanwhile, on the same cores.
    struct Planned {
      StepWork work;
      double seconds = 0;
    };
    Prefetcher<Planned> prefetcher(0, experiment_.train.prefetch, setup_.steps_at_once,
                                   [&](std::int64_t i) {
                                     const Clock::time_point begin = Clock::now();
                                     Planned planned{builder.build(i), 0};
                                     planned.seconds = seconds_since(begin);
                                     return planned;
                                   });
    for (std::int64_t i = 0; i < arguments_.steps + warm_up && total < arguments_.seconds; ++i) {
      const Clock::time_point begin = Clock::now();
      const auto [work, planned] = prefetcher.next();
      const StepResult result = step.run(work, state_);
      const double taken = seconds_since(begin);
      losses.push_back(result.loss[0]);
      if (i == 0) line["first_step_seconds"] = taken;
      if (i < warm_up) continue;
      seconds.push_back(taken);
      planning.push_back(planned);
      work_gflop.push_back(gflop(work));
      rates.push_back(work_gflop.back() / taken);
      total += taken;
      if (i == warm_up) add_cost(line, work);
      if (to_target && (i + 1) % arguments_.evaluate_every == 0) {
        const double tau = validate();
        taus.push_back({i + 1, total, tau});
        if (tau >= arguments_.target) break;
      }
    }
    line["configs"] = arguments_.configs;
    line["slates"] = arguments_.slates;
    line["steps"] = seconds.size();
    line["total_seconds"] = total;
    line["waited_seconds"] = prefetcher.waited().count();
    line["loss_first"] = losses.front();
    line["loss_last"] = losses.back();
    add_times(line, "seconds", seconds);
    add_times(line, "planning_seconds", planning);
    if (to_target) {
      line["tau"] = taus;  // [step, seconds of training, tau]
      line["reached"] = !taus.empty() && taus.back()[2] >= arguments_.target;
    } else {
      add_times(line, "gflop", work_gflop);
      add_times(line, "gflops", rates);
    }
  }

  // Rows and arithmetic of a step, on the plan that was built and with all rows of a dense one.
  void add_cost(json& line, const StepWork& work) const {
    const std::size_t layers = experiment_.network.blocks.size();
    std::vector<std::int64_t> rows(layers, 0);
    std::int64_t first_rows = 0;
    for (const UnitPass& pass : work.passes) {
      if (pass.first_member > 0) continue;  // of a unit that has been counted
      const Plan& plan = *pass.data->input.plan;
      first_rows += plan.first_rows();
      for (std::size_t i = 0; i < layers; ++i) rows[i] += plan.layers[i]->rows_out;
    }
    const std::int64_t nodes = setup_.data.graph(0).nodes;
    const std::int64_t dense = nodes * arguments_.configs * arguments_.slates;
    line["rows_first"] = first_rows;
    line["rows"] = rows;
    line["rows_dense"] = dense;
    const PlanCost cost = dense_plan_cost(dense, std::vector<std::int64_t>(layers, dense),
                                          std::vector<std::int64_t>(layers),
                                          nodes * arguments_.slates, 0, network_work());
    line["gflop_dense"] = arguments_.members * 1e-9 * (cost.forward + cost.backward);
  }

  NetworkWork network_work() const { return experiment_.network.work(setup_.network.schema()); }

  // Floating-point operations of a step in units of 1e9, while the scores are not clipped.
  double gflop(const StepWork& work) const {
    double sum = 0;
    for (const UnitPass& pass : work.passes) {
      sum += pass.members * 1e-9 * plan_cost(*pass.data->input.plan, network_work()).step();
    }
    return sum;
  }

  // Prepares steps as training does, by a loader thread and the pool, and runs nothing beside it.
  void plan(json& line) {
    const StepBuilder builder = setup_.steps_of(0);
    Prefetcher<StepWork> prefetcher(0, experiment_.train.prefetch, setup_.steps_at_once,
                                    [&](std::int64_t i) { return builder.build(i); });
    for (int i = 0; i < arguments_.warm_up; ++i) prefetcher.next();
    const Clock::time_point begin = Clock::now();
    const std::clock_t processor = std::clock();
    for (std::int64_t i = 0; i < arguments_.steps; ++i) prefetcher.next();
    const auto slates = static_cast<double>(arguments_.steps * arguments_.slates);
    line["slate_processor_seconds"] =
        static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC / slates;
    line["slates_per_second"] = slates / seconds_since(begin);
  }

  double validate() {
    if (!valid_)
      valid_.emplace(experiment_.data.evaluation("valid"), context_)
          .add(experiment_, setup_.network);
    return evaluate_members(*valid_, state_.weights().flat, state_.alive(), 0, context_)
        .ensemble_mean();
  }

  void infer(json& line) {
    std::vector<double> seconds;
    double total = 0;
    for (std::int64_t i = 0;
         i < arguments_.steps + arguments_.warm_up && total < arguments_.seconds; ++i) {
      const Clock::time_point begin = Clock::now();
      score_graphs(setup_.network, state_.weights().flat, arguments_.members, setup_.data,
                   {0, setup_.data.size()}, setup_.units, {experiment_.evaluate_block, 0},
                   context_);
      const double taken = seconds_since(begin);
      if (i == 0) line["first_pass_seconds"] = taken;
      if (i < arguments_.warm_up) continue;
      seconds.push_back(taken);
      total += taken;
    }
    const Array<std::int32_t>& groups = setup_.data.run_times(0).group;
    line["block"] = experiment_.evaluate_block.size(setup_.data.graph(0).nodes);
    line["runs"] = groups.size();
    line["distinct"] = *std::max_element(groups.begin(), groups.end()) + 1;
    add_times(line, "seconds", seconds);
    line["runs_per_second"] =
        static_cast<double>(groups.size()) / line["seconds_median"].get<double>();
  }

  const Arguments& arguments_;
  const Experiment experiment_;
  JobContext& context_;
  const TrainingSetup setup_;
  TrainingState state_;
  std::optional<ScoringSession> valid_;
};

void read_arguments(CLI::App& app, Arguments& arguments) {
  app.add_option("shards", arguments.shards, "Folder of the shards")->required();
  app.add_option("collection", arguments.collection, "E.g. layout:xla:random")->required();
  app.add_option("graph", arguments.graph, "Name of a graph of the training split")->required();
  app.add_option("--model", arguments.model, "latenciaga_xla or latenciaga_nlp")
      ->capture_default_str();
  app.add_option(
         "--loss", arguments.loss,
         "ListMLE with a clip of the norm; without; or with one and unknown to ignore shifts")
      ->check(CLI::IsMember({"clip", "no-clip", "opaque"}))
      ->capture_default_str();
  app.add_flag("--recompute", arguments.recompute, "Keep every other layer's states only");
  app.add_option("--unit", arguments.unit, "Slates that share a plan: none, or those of the graph")
      ->check(CLI::IsMember({"slates", "graph"}))
      ->capture_default_str();
  app.add_option("--plan", arguments.plan)
      ->check(CLI::IsMember({"auto", "dense", "refined"}))
      ->capture_default_str();
  app.add_option("--precision", arguments.precision, "Operands of the products with the weights")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16"}))
      ->capture_default_str();
  app.add_option("--directions", arguments.directions,
                 "Messages from consumers to producers only, or both ways")
      ->check(CLI::IsMember({"forth", "both"}))
      ->capture_default_str();
  app.add_option("--aggregation", arguments.aggregation)
      ->check(CLI::IsMember({"mean", "max"}))
      ->capture_default_str();
  app.add_option(
         "--mode", arguments.mode,
         "train, plan (prepare steps only), infer (all runs of the graph) or tau (train until the "
         "valid split is ranked as well as --target)")
      ->check(CLI::IsMember({"train", "plan", "infer", "tau"}))
      ->capture_default_str();
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
  app.add_option("--configs", arguments.configs, "Configurations of a slate")->check(positive);
  app.add_option("--slates", arguments.slates, "Slates of a step")->check(positive);
  app.add_option("--members", arguments.members)->check(positive);
  app.add_option("--threads", arguments.threads)->check(positive)->capture_default_str();
  app.add_option("--steps", arguments.steps, "Steps (infer: passes) that are measured, at most")
      ->check(positive);
  app.add_option("--seconds", arguments.seconds, "No step starts after so many measured seconds");
  app.add_option("--warm-up", arguments.warm_up, "Steps before that are not measured")
      ->capture_default_str();
  app.add_option("--block", arguments.block, "infer, tau: configurations of a plan; 0: by its rows")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--evaluate-every", arguments.evaluate_every, "tau: steps")->check(positive);
  app.add_option("--target", arguments.target, "tau: Kendall tau")->capture_default_str();
  app.add_option("--engine", arguments.engine)->check(CLI::IsMember({"auto", "general"}));
  app.add_option("--prefetch", arguments.prefetch, "Steps that are prepared ahead");
  app.add_option("--device", arguments.device, "Number of a GPU; -1: the CPU")
      ->capture_default_str();
  app.add_option("--seed", arguments.seed)->capture_default_str();
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  CLI::App app("Time of a training step or of scoring one graph");
  tpudist::Arguments arguments;
  tpudist::read_arguments(app, arguments);
  CLI11_PARSE(app, argc, argv);
  tpudist::keep_tensor_memory();  // as tpudist's main function does
  try {
    const std::unique_ptr<tpudist::Communicator> self = tpudist::make_self_communicator();
    tpudist::ThreadPool pool(arguments.threads, tpudist::use_one_thread_per_worker);
    tpudist::use_one_thread_per_worker();
    tpudist::NoProgress progress;
    tpudist::JobContext context{*self, pool, tpudist::NodeTopology{}, progress};
    fmt::print("{}\n", tpudist::StepBench(arguments, context).run().dump());
  } catch (const tpudist::Error& error) {
    fmt::print(stderr, "step_bench: {}\n", error.what());
    return error.exit_code();
  }
}
