#include "train/loop/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "core/numbers.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/network/network_config.hpp"
#include "models/plans/plan.hpp"
#include "results/records/run_folder.hpp"
#include "train/loop/run_report.hpp"
#include "train/loop/step_side.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

constexpr int kMostSteps = 20;     // most planned steps
constexpr int kPlannedSteps = 3;   // steps whose units are counted as refined or dense
constexpr int kPlannedUnits = 80;  // planned approximately, to judge the balance of the ranks
constexpr int kListedRanks = 16;

// The plan chosen for a unit, and the arithmetic saved by it.
std::string choice_line(const UnitBuilder& units, const PlanComparison& plans) {
  if (!units.takes_refined(plans)) {
    return fmt::format("dense (the refined one would save a factor of {:.2f})", plans.saving());
  }
  return fmt::format("refined, saves a factor of {:.2f} in arithmetic", plans.saving());
}

// One of the first steps with the costs of its units, from their own plans.
struct PlannedStep {
  BatchPlan batch;
  std::vector<UnitEstimate> units;
  std::vector<double> chunks;  // [units] number of chunks, if a slate is computed in chunks
};

std::vector<PlannedStep> plan_steps(const TrainingSetup& setup, ThreadPool& pool) {
  const int first = drawn_by(setup.experiment, 0);
  const int units = setup.planner.plan(0).units();
  std::vector<PlannedStep> steps(
      static_cast<std::size_t>(std::clamp(kPlannedUnits / units, kPlannedSteps, kMostSteps)));
  std::vector<std::pair<std::size_t, int>> work;  // (step, unit)
  for (std::size_t step = 0; step < steps.size(); ++step) {
    steps[step].batch = setup.planner.plan(static_cast<std::int64_t>(step));
    const auto count = static_cast<std::size_t>(steps[step].batch.units());
    steps[step].units.resize(count);
    steps[step].chunks.resize(count, 1.0);
    for (std::size_t unit = 0; unit < count; ++unit) work.emplace_back(step, unit);
  }
  pool.parallel_for(static_cast<std::int64_t>(work.size()), [&](std::int64_t i) {
    const auto [at, unit] = work[i];
    PlannedStep& step = steps[at];
    const std::vector<SlateRows> whole = rows_of_unit(step.batch, setup.order, unit, first);
    const std::vector<SlateRows> part = computed_together(setup.experiment, whole);
    std::vector<Slate> slates;
    for (const SlateRows& slate : part) slates.push_back(setup.data.slate(slate.graph, slate.rows));
    if (part.front().rows.size() < whole.front().rows.size()) {
      // All chunks hold the slate's first configuration.
      step.chunks[unit] = static_cast<double>(whole.front().rows.size() - 1) /
                          static_cast<double>(part.front().rows.size() - 1);
    }
    step.units[unit] = setup.units.estimate(
        slates, graph_draw(setup.experiment, step.batch.step, slates_of_unit(step.batch, unit)));
  });
  return steps;
}

// Units of the first steps, and how many of them get a refined plan.
std::string refined_line(const std::vector<PlannedStep>& steps) {
  std::int64_t all = 0, refined = 0;
  for (int step = 0; step < kPlannedSteps; ++step) {
    for (const UnitEstimate& unit : steps[step].units) {
      ++all;
      refined += unit.refined;
    }
  }
  return fmt::format("{} of {} of the first {} steps refined", refined, counted(all, "unit"),
                     kPlannedSteps);
}

// The costs of the units for one member, by `cost`.
std::vector<UnitCosts> unit_costs(const std::vector<PlannedStep>& steps,
                                  double (*cost)(const UnitEstimate&)) {
  std::vector<UnitCosts> costs;
  for (const PlannedStep& step : steps) {
    UnitCosts& own = costs.emplace_back(UnitCosts{step.batch.step, {}});
    for (std::size_t unit = 0; unit < step.units.size(); ++unit)
      own.work.push_back(step.chunks[unit] * cost(step.units[unit]));
  }
  return costs;
}

// Units are assigned by estimated costs; the printed balance uses the real plans.
std::string rank_lines(const RankLoad& load, std::int64_t steps) {
  std::string text = fmt::format("work of {}, true plans of {}\n", counted(load.ranks, "rank"),
                                 counted(steps, "step"));
  const auto percent = [&](double work) {
    return load.mean > 0 ? 100 * work / (load.ranks * load.mean) : 0;
  };
  const int listed = std::min(load.ranks, kListedRanks);
  for (int r = 0; r < listed; ++r)
    text += fmt::format("  rank {:<7} {:.1f} % of the work\n", r, percent(load.work[r]));
  if (load.ranks > listed) {
    const auto [least, most] = std::ranges::minmax(load.work);
    text += fmt::format("  all          {:.2f} to {:.2f} % of the work each\n", percent(least),
                        percent(most));
  }
  text += fmt::format("  balance      {:.1f} % (mean rank / slowest rank, step by step)\n",
                      load.slowest > 0 ? 100 * load.mean / load.slowest : 100);
  return text;
}

// Most floats that a member holds in the states and gradients of a step on `plan`.
double floats_of_step(const TrainingSetup& setup, const std::shared_ptr<const Plan>& plan) {
  return training_floats(setup.network.config(), setup.network.schema(),
                         *setup.units.computed_part(plan), setup.experiment.train.recompute);
}

// The largest unit, its plan and its memory.
std::string largest_unit_text(const TrainingSetup& setup, int ranks) {
  const Experiment& experiment = setup.experiment;
  const std::vector<SlateRows> slates = computed_together(experiment, largest_unit(setup));
  const Graph& graph = setup.data.graph(slates.front().graph);
  const std::int64_t whole = setup.data.entry(slates.front().graph).nodes,
                     seen = setup.data.seen_nodes(slates.front().graph);
  const GraphDraw draw = largest_draw(experiment);
  const Unit unit = setup.units.build(slates, draw);
  const PlanComparison plans = setup.units.compare(unit.slates, draw);
  const int chunk = experiment.batch.member_chunk;
  const int together =
      std::min(chunk > 0 ? chunk : setup.units.members_together(unit), experiment.ensemble.members);
  const auto activations = static_cast<std::uint64_t>(4 * floats_of_step(setup, unit.input.plan)) *
                           static_cast<std::uint64_t>(together);
  const DeviceBytes device = device_bytes(setup, ranks);
  std::string layers = "layers, and their rows in the largest unit against a dense plan's\n";
  for (const std::string& line : layer_lines(setup, plans)) layers += "  " + line + "\n";
  // Plans of drawn parts are not kept.
  std::string drawn;
  if (plans.drawn_seconds > 0) {
    std::size_t configs = 0;
    for (const Slate& slate : unit.slates) configs += slate.configs.size();
    drawn = fmt::format(
        "  drawn        {} nodes, {:.3g} % of edges dropped, anew for every slate and step; "
        "planned "
        "in {:.1f} ms\n",
        plans.dense_rows / static_cast<std::int64_t>(configs), 100 * experiment.batch.edge_dropout,
        1e3 * plans.drawn_seconds);
  }
  return layers + fmt::format(
                      "largest unit\n  slates       {}\n  graph        {} ({}{}, {})\n"
                      "  plan         {} rows over all layers, {}\n"
                      "  taken        {}\n"
                      "  activations  {} for {} at a time\n{}"
                      "on a GPU\n  kept         {}\n  plans        {} of {} and their inputs\n"
                      "  a pass       {} of states, their gradients, and weights of leaves\n"
                      "  besides      some 2 GiB of CUDA, NCCL and LibTorch\n",
                      slates.size(), graph.name, counted(seen, "node"),
                      seen == whole ? "" : fmt::format(" of {}", whole),
                      counted(graph.edges, "edge"),
                      format_count(static_cast<std::int64_t>(unit.input.plan->total_rows())),
                      format_bytes(unit.input.plan->bytes()), choice_line(setup.units, plans),
                      format_bytes(activations), counted(together, "member"), drawn, device.text(),
                      format_bytes(device.plans), counted(experiment.train.prefetch + 1, "step"),
                      format_bytes(device.pass));
}

// Memory of the data, on each rank and on each node.
std::string memory_text(const Dataset& data, int ranks) {
  if (data.shared_bytes() > 0) {
    return fmt::format("  in memory    {} on each rank\n  shared       {} once on each node\n",
                       format_bytes(data.resident_bytes()), format_bytes(data.shared_bytes()));
  }
  return fmt::format("  in memory    {} on each rank{}\n", format_bytes(data.resident_bytes()),
                     ranks > 1 ? " (data.cache_dir=auto: once on each node)" : "");
}

// Memory of the network's inputs for all graphs, on each rank or on each node.
std::string inputs_text(const TrainingSetup& setup) {
  if (const std::uint64_t shared = setup.units.shared_bytes())
    return fmt::format("{} once on each node (graphs as the network takes them)",
                       format_bytes(shared));
  // Nodes of equal features and opcode are kept as one.
  std::uint64_t inputs = 0;
  for (int g = 0; g < setup.data.size(); ++g)
    inputs += setup.network.graph_bytes(setup.data.graph(g).nodes);
  return fmt::format("{} at most on each rank (features of all nodes, as the network takes them)",
                     format_bytes(inputs));
}

// Memory of the scores of segments, if graphs are cut. The first rank also holds the copy for the
// checkpoint, and while the file is made, the file twice.
std::string segments_text(const TrainingSetup& setup) {
  const Experiment& experiment = setup.experiment;
  if (!experiment.data.cuts_segments()) return "";
  std::int64_t segments = 0, scores = 0;
  for (const auto& [rows, own] : cut_graphs(setup.data)) {
    segments += own;
    scores += own * rows;
  }
  const std::uint64_t bytes = static_cast<std::uint64_t>(scores) * sizeof(float) *
                              static_cast<std::uint64_t>(experiment.ensemble.members);
  return fmt::format(
      "  segments     {} with configurable nodes, {} of scores on each rank and in each "
      "checkpoint; "
      "{} on the first rank, which writes them\n",
      format_count(segments), format_bytes(bytes), format_bytes(4 * bytes));
}

std::string data_and_model_text(const TrainingSetup& setup, int ranks) {
  const Experiment& experiment = setup.experiment;
  const ParameterTable& parameters = setup.network.parameters();
  const auto flat = static_cast<std::uint64_t>(parameters.length()) * 4u *
                    static_cast<std::uint64_t>(experiment.ensemble.members);
  const std::vector<std::int64_t> rows = setup.data.rows_per_graph();
  const bool averages = experiment.train.average.kind != AverageKind::none;
  return fmt::format(
      "data\n  graphs       {}\n  rows         {}\n{}{}"
      "  inputs       {}\n"
      "model\n  parameters   {} a member, {}\n  buffers      {} (parameters, gradient, two "
      "moments{})\n",
      setup.data.size(), format_count(std::accumulate(rows.begin(), rows.end(), std::int64_t{0})),
      segments_text(setup), memory_text(setup.data, ranks), inputs_text(setup),
      format_count(static_cast<std::int64_t>(parameters.parameters())),
      counted(experiment.ensemble.members, "member"), format_bytes((averages ? 5 : 4) * flat),
      averages ? ", averages" : "");
}

}  // namespace

WorkPlan plan_work(const Experiment& experiment, const std::vector<int>& asked,
                   JobContext& context) {
  // One rank alone makes the plan; other ranks need not exist.
  const auto alone = make_self_communicator();
  const int started = context.world.size(), ranks = asked.empty() ? started : asked.back();
  constexpr int kWithCosts = 2;  // ranks; on a CPU, a setup for one takes sizes as costs
  const TrainingSetup setup(experiment, experiment.training_data(), context.pool,
                            context.topology.device, std::max({ranks, started, kWithCosts}),
                            *alone);
  const std::vector<PlannedStep> steps = plan_steps(setup, context.pool);
  const std::vector<UnitCosts> costs =
      unit_costs(steps, [](const UnitEstimate& unit) { return unit.step_work(); });
  WorkPlan plan;
  std::vector<int> counts = asked;
  counts.insert(counts.begin(), started);
  const auto row = static_cast<double>(setup.network.parameters().length() + kRowExtra);
  const Exchanged what = experiment.dist.all_reduce ? Exchanged::ring
                         : setup.network.device()   ? Exchanged::leaves
                                                    : Exchanged::trees;
  for (const int count : counts)
    plan.loads.push_back(rank_load(setup.planner, count, costs, sizeof(float) * row, what));
  const double operations =
      ranks *
      rank_load(setup.planner, ranks,
                unit_costs(steps, [](const UnitEstimate& unit) { return unit.cost.step(); }), row,
                what)
          .mean;
  plan.text = data_and_model_text(setup, ranks);
  plan.text += fmt::format(
      "steps\n  an epoch     {} of {} x {} in {}\n"
      "  training     {} of {}\n  plans        {}\n",
      counted(setup.order.steps_per_epoch(), "step"), counted(experiment.batch.slates, "slate"),
      counted(experiment.batch.configs, "configuration"),
      counted(steps.front().batch.units(), "unit"), counted(experiment.train.steps, "step"),
      format_operations(operations), refined_line(steps));
  plan.text += largest_unit_text(setup, ranks);
  const auto data = open_for_costs(experiment.data.evaluation("valid"), context.pool);
  std::optional<ScoringSession> valid;
  if (data) valid.emplace(*data, context).add(experiment, setup.network);
  plan.evaluations = evaluation_costs(setup, valid ? &*valid : nullptr, context);
  plan.text += evaluation_text(experiment, plan.evaluations, data.has_value(), operations);
  if (asked.size() <= 2) plan.text += rank_lines(plan.loads.back(), std::ssize(costs));
  return plan;
}

void dry_run(const Experiment& experiment, const std::filesystem::path& run, bool resume,
             const RankRequest& asked, JobContext& context,
             const std::function<void(std::string_view)>& print) {
  const bool root = context.world.rank() == 0;
  WorkPlan plan;
  run_on_first_rank(context.world, [&] {
    RunClaim(run, resume);  // for its errors
    plan = plan_work(experiment, asked.ranks, context);
    print(plan.text);  // before the steps, which may run out of memory
  });
  const std::string time = time_text(experiment, run, resume, asked, plan, context);
  if (root) print(time);
}

}  // namespace tpudist
