#include "train/loop/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "core/prefetcher.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/device_reducer.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "results/records/run_folder.hpp"
#include "train/loop/run_checkpoints.hpp"
#include "train/loop/run_evaluation.hpp"
#include "train/loop/run_predictions.hpp"
#include "train/loop/step_side.hpp"
#include "train/loop/training_state.hpp"

namespace tpudist {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12;

std::string cost_text(const ScoringCost& cost, std::string_view members, double step_operations) {
  std::string text = fmt::format("{} ({} distinct) of {} x {}: {}", counted(cost.rows, "row"),
                                 format_count(cost.distinct), counted(cost.graphs, "graph"),
                                 members, format_operations(cost.flop));
  if (step_operations > 0)
    text += fmt::format(", as much as {:.0f} steps", cost.flop / step_operations);
  return text;
}

using Clock = std::chrono::steady_clock;

// A slow disk. Checkpoints are written beside the steps; training waits only for the last one.
constexpr double kCheckpointBytesPerSecond = 100e6;

// Takes the first steps of the training, and measures all except the first.
class TimedSteps {
 public:
  // `ranks`: the most for which times are asked.
  TimedSteps(const Experiment& experiment, const std::filesystem::path& run, bool resume, int ranks,
             JobContext& context)
      : experiment_(experiment),
        context_(context),
        setup_(experiment, experiment.training_data(), context.pool, context.topology.device,
               std::max(ranks, context.world.size()), context.world),
        planner_(setup_.planner.for_ranks(context.world.size())),
        validation_(setup_, context),
        state_(setup_),
        step_(std::in_place, experiment, setup_.network, context) {
    run_on_all_ranks(context.world, [&] { require_device_memory(setup_, context); });
    const RunFolder folder(run);
    if (!resume || !RunCheckpoints(setup_, folder, /*claim=*/nullptr, context).restore(state_))
      begin_anew(setup_, state_, context);
    first_ = state_.step;
  }

  std::int64_t first() const { return first_; }  // steps done before

  void take() {
    const StepBuilder builder = setup_.steps_of(context_.world.rank(), planner_);
    Prefetcher<StepWork> work(first_, experiment_.train.prefetch, setup_.steps_at_once,
                              [&](std::int64_t step) { return builder.build(step); });
    const auto start = Clock::now();
    std::int64_t goes_on = 1;  // decided by rank 0
    while (goes_on) {
      context_.enter("timed steps", state_.step + 1);
      const auto begin = Clock::now();
      std::optional<StepWork> next;
      run_on_all_ranks(context_.world, [&] { next = work.next(); });
      step_->run(*next, state_);
      const bool warms_up = state_.step == first_ + 1 && state_.step < experiment_.train.steps;
      if (!warms_up) measured_.add(*next, seconds_since(begin), step_->times());
      goes_on = state_.step < experiment_.train.steps && !is_enough(seconds_since(start));
      context_.world.broadcast(std::span(&goes_on, 1), 0);
    }
  }

  // Scores the validation split once, as training will, if this is short. `costs`: on rank 0.
  void evaluate(const EvaluationCosts& costs) {
    constexpr double kLongest = 30;  // seconds
    const std::optional<ScoringCost>& cost = costs.each ? costs.each : costs.last;
    const bool sampled = costs.each || experiment_.train.last_evaluation == LastEvaluation::sampled;
    std::int64_t most_rows = sampled ? experiment_.train.evaluate_rows : 0;
    if (!cost || measured_.seconds_for(cost->work) > kLongest * context_.world.size())
      most_rows = -1;
    context_.world.broadcast(std::span(&most_rows, 1), 0);  // decided by rank 0
    if (most_rows < 0 || !validation_.has_graphs()) return;
    context_.enter("timed evaluation", state_.step);
    const auto begin = Clock::now();
    validation_.evaluate(state_.scored_weights(), state_.alive(), most_rows);
    if (cost) measured_.add_evaluation(cost->work / context_.world.size(), seconds_since(begin));
  }

  // Whether a GPU has the memory that such a rank takes. Collective.
  bool fits(int ranks) {
    std::int64_t fits = 1;
    run_on_all_ranks(context_.world,
                     [&] { fits = device_memory_fault(setup_, context_, ranks).empty(); });
    context_.world.all_reduce(std::span(&fits, 1), ReduceOp::min);
    return fits == 1;
  }

  // Takes the steps again as one of `ranks` ranks, the one with most estimated work, without planning
  // beside it. Each rank does so at the same time, and all get the mean. Call after all other steps.
  RankSpeed speed_as_one_of(int ranks) {
    constexpr double kSeconds = 2;  // for the steps of one rank
    context_.enter("timed shares of steps", state_.step);
    step_.reset();  // frees its memory
    const auto alone = make_self_communicator();
    JobContext own{*alone, context_.pool, context_.topology, context_.progress};
    TrainingStep taken(experiment_, setup_.network, own);
    const BatchPlanner planner = setup_.planner.for_ranks(ranks);
    const double whole = measured_.seconds() * context_.world.size();
    std::int64_t count = std::clamp(static_cast<int>(kSeconds / whole), 1, measured_.count());
    context_.world.broadcast(std::span(&count, 1), 0);
    std::array<double, 3> sums{};  // work, compute, planning
    for (std::int64_t step = first_; step < first_ + count; ++step) {
      const std::vector<double> cost = planner.plan(step).rank_cost;
      const auto rank = static_cast<int>(std::ranges::max_element(cost) - cost.begin());
      double work = 0, compute = std::numeric_limits<double>::infinity(), planning = compute;
      for (int time = 0; time < 2; ++time) {  // the first may be slow: the quicker one counts
        StepWork share;
        run_on_all_ranks(context_.world,
                         [&] { share = setup_.steps_of(rank, planner).build(step); });
        for (int& owner : share.batch.owners.owner) owner = owner == rank ? 0 : -1;
        state_.step = step;
        taken.run(share, state_);
        context_.advance();
        work = share.work;
        compute = std::min(compute, taken.times().compute);
        planning = std::min(planning, share.read_seconds + share.plan_seconds);
      }
      sums[0] += work;
      sums[1] += compute;
      sums[2] += planning / context_.pool.threads();
    }
    context_.world.all_reduce(std::span(sums), ReduceOp::sum);
    return sums[0] > 0 ? RankSpeed{sums[1] / sums[0], sums[2] / sums[0]} : RankSpeed{};
  }

  // The speed of messages between the started ranks. Collective, for at least two.
  LinkSpeed links() {
    const std::int64_t row = setup_.network.parameters().length();
    const auto bytes = static_cast<double>(experiment_.ensemble.members * row) * sizeof(float);
    if (!setup_.network.device()) return measure_links(context_.world, bytes);
    return measure_links(*make_nccl_communicator(context_.world, context_.topology.device, nullptr,
                                                 experiment_.dist.timeout),
                         bytes);
  }

  const MeasuredSteps& measured() const { return measured_; }
  bool hides_planning() const { return setup_.network.device() != nullptr; }
  double state_bytes() const { return state_.checkpoint_bytes(); }

 private:
  bool is_enough(double seconds) const {
    constexpr int kMost = 20, kFew = 5;
    constexpr double kShort = 2, kLong = 10;  // seconds
    const int count = measured_.count();
    return count >= kMost || (count >= kFew && seconds > kShort) || (count > 0 && seconds > kLong);
  }

  const Experiment& experiment_;
  JobContext& context_;
  const TrainingSetup setup_;
  const BatchPlanner planner_;   // for the started ranks
  const Validation validation_;  // opened, since training opens it too
  TrainingState state_;
  std::optional<TrainingStep> step_;
  MeasuredSteps measured_;
  std::int64_t first_ = 0;
};

// The ranks that a node takes: as started, or of one rank alone as many as its cores or GPUs take.
int ranks_of_node(const JobContext& context) {
  if (context.world.size() > 1) return context.topology.local_ranks;
  if (context.topology.device >= 0) return static_cast<int>(visible_devices().devices.size());
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(cores / context.pool.threads(), 1);
}

// 32 MiB on a Hopper for each thread that calls cuBLAS: two score, one is autograd's.
constexpr std::uint64_t kWorkspaces = 3 * (std::uint64_t{32} << 20);

// The bytes of a leaf of `unit` in a pass on a GPU. Adds the bytes of the unit's plans and inputs to
// `plans`. Where a loss ignores a shift, a GPU computes the needed part of a plan.
double leaf_bytes(const TrainingSetup& setup, const Unit& unit, std::uint64_t& plans) {
  double leaf = 0;
  for (const UnitInput& input :
       unit.chunks.empty() ? std::span(&unit.input, 1) : std::span(unit.chunks)) {
    const std::shared_ptr<const Plan> plan = setup.units.computed_part(input.plan);
    leaf = std::max(leaf, setup.network.leaf_bytes(*plan));
    auto floats = std::ssize(input.states);
    for (const auto& graph : input.graphs) floats += graph->nodes() * setup.network.input_columns();
    plans += plan->bytes() + sizeof(float) * static_cast<std::uint64_t>(floats);
  }
  return leaf;
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
    const int members = ensemble.trains_on_valid
                            ? (ensemble.members + ensemble.folds - 1) / ensemble.folds
                            : ensemble.members;
    return valid->cost(members, most_rows);
  };
  if (evaluations_after(train, 0) > 0) costs.each = cost(train.evaluate_rows);
  if (train.last_evaluation == LastEvaluation::sampled) costs.last = cost(train.evaluate_rows);
  if (train.last_evaluation == LastEvaluation::all) costs.last = cost(0);
  return costs;
}

std::int64_t evaluations_after(const TrainConfig& train, std::int64_t done) {
  const std::int64_t every = train.evaluate_every;
  if (every <= 0 || train.steps <= done) return 0;
  return (train.steps - 1) / every - done / every;  // the last step has its own evaluation
}

std::string evaluation_text(const Experiment& experiment, const EvaluationCosts& costs,
                            bool has_graphs, double step_operations) {
  const TrainConfig& train = experiment.train;
  const std::string held_out = "the members that did not train on them";
  const std::string members = experiment.ensemble.trains_on_valid
                                  ? held_out
                                  : counted(experiment.ensemble.members, "member");
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

void MeasuredSteps::add(const StepWork& work, double seconds, const StepTimes& times) {
  ++count_;
  seconds_ += seconds;
  compute_ += times.compute;
  optimizer_ += times.optimizer;
  work_ += work.work;
}

void MeasuredSteps::add_evaluation(double work, double seconds) {
  if (seconds_for(work) > 0) scoring_scale_ = seconds / seconds_for(work);
}

double TimeForecast::total() const {
  return static_cast<double>(steps) * step + static_cast<double>(evaluations) * evaluation + last;
}

std::string TimeForecast::text() const {
  std::string text = fmt::format("{} of {}", counted(steps, "step"), format_seconds(step));
  if (evaluations > 0) {
    text +=
        fmt::format(", {} of {}", counted(evaluations, "evaluation"), format_seconds(evaluation));
  }
  return text + fmt::format(", {} after the last step", format_seconds(last));
}

TimeForecast forecast_time(const Experiment& experiment, const MeasuredSteps& measured, double step,
                           int ranks, const EvaluationCosts& costs, double state_bytes,
                           std::int64_t done) {
  const auto seconds = [&](const std::optional<ScoringCost>& cost) {
    return cost ? measured.seconds_of_scoring(cost->work) / ranks : 0;
  };
  TimeForecast forecast{.steps = experiment.train.steps - done, .step = step};
  if (costs.each) forecast.evaluations = evaluations_after(experiment.train, done);
  forecast.evaluation = seconds(costs.each);
  // If both use the same rows, the predictions serve as the last evaluation.
  const bool at_once =
      costs.predictions && costs.last &&
      experiment.predictions.most_rows == (experiment.train.last_evaluation == LastEvaluation::all
                                               ? 0
                                               : experiment.train.evaluate_rows);
  forecast.last = seconds(costs.predictions) + (at_once ? 0 : seconds(costs.last)) +
                  state_bytes / kCheckpointBytesPerSecond;
  return forecast;
}

std::string time_text(const Experiment& experiment, const std::filesystem::path& run, bool resume,
                      const RankRequest& asked, const WorkPlan& plan, JobContext& context) {
  const auto begin = Clock::now();
  const int started = context.world.size();
  TimedSteps timed(experiment, run, resume, asked.ranks.empty() ? 1 : asked.ranks.back(), context);
  if (timed.first() >= experiment.train.steps)
    return fmt::format("all {} steps are done: only scores are left\n", timed.first());
  const double set_up = seconds_since(begin);
  timed.take();
  timed.evaluate(plan.evaluations);
  // Nothing for numbers of ranks whose passes a GPU cannot hold.
  std::vector<std::optional<RankSpeed>> speeds;
  for (const int ranks : asked.ranks) {
    std::optional<RankSpeed>& speed = speeds.emplace_back();
    if (timed.fits(ranks)) speed = timed.speed_as_one_of(ranks);
  }
  const bool measures = !asked.ranks.empty() && !asked.links && started > 1;
  const LinkSpeed links = measures ? timed.links() : asked.links.value_or(LinkSpeed{});
  if (context.world.rank() != 0) return "";
  const MeasuredSteps& measured = timed.measured();
  const auto forecast = [&](double step, int ranks) {
    return forecast_time(experiment, measured, step, ranks, plan.evaluations, timed.state_bytes(),
                         timed.first());
  };
  // The timed steps may have had more or less work than others.
  const TimeForecast own =
      forecast(measured.seconds() *
                   (measured.work() > 0 ? plan.loads.front().work.front() / measured.work() : 1),
               started);
  std::string text = fmt::format(
      "time of {} with {} each, from {} on the real data\n"
      "  set-up       {}\n  training     {}\n  together     about {}\n",
      counted(started, "rank"), counted(context.pool.threads(), "thread"),
      counted(measured.count(), "step"), format_seconds(set_up), own.text(),
      format_seconds(set_up + own.total()));
  std::vector<RankForecast> rows;
  std::vector<int> too_large;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    if (!speeds[i]) {
      too_large.push_back(asked.ranks[i]);
      continue;
    }
    RankForecast& row =
        rows.emplace_back(forecast_step(plan.loads[i + 1], *speeds[i], links,
                                        measured.optimizer_seconds(), timed.hides_planning()));
    row.efficiency = rows.front().ranks * rows.front().step / (row.ranks * row.step);
    row.training = set_up + forecast(row.step, row.ranks).total();
  }
  if (rows.empty()) return text;
  const int node_ranks = ranks_of_node(context);
  return text +
         fmt::format(
             "forecast for ranks with {} each on {} of their own, {} on a node\n"
             "  messages     {:.2g} us each, {:.2g} GB/s for each rank ({})\n",
             counted(context.pool.threads(), "thread"), timed.hides_planning() ? "GPUs" : "cores",
             node_ranks, 1e6 * links.latency, 1e-9 * links.bandwidth,
             measures      ? fmt::format("measured between these {} ranks", started)
             : asked.links ? "--link"
                           : "assumed: 10 Gb/s Ethernet, --link gives others") +
         (too_large.empty()
              ? ""
              : fmt::format("  left out     {}: a pass needs more memory than a GPU has\n",
                            fmt::join(too_large, ", "))) +
         rank_table(rows, node_ranks) + rank_advice(rows);
}

std::string DeviceBytes::text() const {
  return fmt::format(
      "{} of parameters, moments and averages, {} of gradients ({} rows), {} of sums",
      format_bytes(weights), format_bytes(gradients), rows, format_bytes(sums));
}

DeviceBytes device_bytes(const TrainingSetup& setup, int ranks) {
  const Experiment& experiment = setup.experiment;
  const int members = experiment.ensemble.members;
  const bool averages = experiment.train.average.kind != AverageKind::none;
  const std::int64_t row = setup.network.parameters().length() + kRowExtra;
  const BatchPlanner planner = setup.planner.for_ranks(ranks);
  const LargestStep step = largest_step(setup, planner);
  const StepWork work = setup.steps_of(step.rank, planner).build(step.step);
  DeviceBytes bytes;
  bytes.weights = DeviceWeights::bytes(setup.network.parameters(), members, averages ? 1 : 0);
  bytes.rows = (step.leaves + ranks - 1) / ranks;
  // The tree of several ranks keeps the rows, their slices and the slices of all ranks' rows; the
  // sums, the rank's own slice of the sums, and all slices.
  const bool exchanges = ranks > 1 && !experiment.dist.all_reduce;
  const std::int64_t slice = exchanges ? DeviceReducer::slice_of(row, ranks) : 0;
  bytes.gradients =
      static_cast<std::uint64_t>(bytes.rows * (row + 2 * ranks * slice)) * sizeof(float);
  bytes.sums = static_cast<std::uint64_t>(members * (row + (ranks + 1) * slice)) * sizeof(float);

  std::map<const Unit*, double> leaf_of;
  JoinedBytes together;
  double largest = 0;  // of a pass that stays whole
  const int chunk = experiment.batch.member_chunk;
  for (const UnitPass& pass : work.passes) {
    const auto [leaf, is_new] = leaf_of.try_emplace(pass.data.get());
    if (is_new) leaf->second = leaf_bytes(setup, *pass.data, bytes.plans);
    largest = std::max(largest, pass.members * leaf->second);
    if (chunk == 0 && pass.data->chunks.empty()) together.add(pass, leaf->second);
  }
  double joined = together.total();
  bytes.plans *= static_cast<std::uint64_t>(experiment.train.prefetch + 1);

  const std::vector<SlateRows> slates = largest_unit(setup);
  const Unit unit = setup.units.build(slates, largest_draw(experiment));
  const double leaf = leaf_bytes(setup, unit, bytes.plans);
  const bool shared = shares_slates(experiment);
  int learners = 0;  // its graphs are drawn for all of them in the same step
  for (int m = 0; m < members; ++m)
    learners += std::ranges::any_of(
        slates, [&](const SlateRows& own) { return !setup.planner.held_out(m, own.graph); });
  const int alike = shared ? learners : 1;
  largest = std::max(largest, (chunk > 0 ? std::min(chunk, alike) : alike) * leaf);
  if (chunk == 0 && unit.chunks.empty())
    joined = std::max(joined, (shared ? learners : (learners + ranks - 1) / ranks) * leaf);
  bytes.pass =
      static_cast<std::uint64_t>(std::max(largest, std::min(joined, setup.most_pass_bytes)));
  bytes.workspaces = kWorkspaces;
  return bytes;
}

std::string device_memory_fault(const DeviceBytes& bytes, std::uint64_t memory) {
  if (bytes.total() <= memory) return "";
  return fmt::format(
      "the training needs {} of GPU memory ({}, {} of plans, {} for a pass) and the GPU has {}: "
      "train fewer members (ensemble.members) or slates (batch.slates) at a time, or on more GPUs; "
      "a pass takes less with train.recompute=true, batch.member_chunk or batch.config_chunk",
      format_bytes(bytes.total()), bytes.text(), format_bytes(bytes.plans),
      format_bytes(bytes.pass), format_bytes(memory));
}

std::string device_memory_fault(const TrainingSetup& setup, const JobContext& context, int ranks) {
  if (!setup.network.device()) return "";
  const std::vector<Device> devices = visible_devices().devices;
  const auto own = static_cast<std::size_t>(context.topology.device);
  if (own >= devices.size()) return "";  // an emulated GPU
  return device_memory_fault(device_bytes(setup, ranks), devices[own].memory);
}

void require_device_memory(const TrainingSetup& setup, const JobContext& context) {
  const std::string fault = device_memory_fault(setup, context, context.world.size());
  if (!fault.empty()) throw ConfigError(fault);
}

}  // namespace tpudist
