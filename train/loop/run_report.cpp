#include "train/loop/run_report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/network_config.hpp"
#include "results/records/settings.hpp"

namespace tpudist {
namespace {

// The number of nodes that a violation ratio cannot judge, as a line.
std::string uncounted_line(const TrainingSetup& setup) {
  const GraphColumns& columns = setup.network.config().encoder.columns;
  std::int64_t all = 0, unknown = 0;
  for (int g = 0; g < setup.data.size(); ++g) {
    const Graph& graph = setup.data.graph(g);
    const std::vector<std::int32_t> largest =
        largest_dimensions(graph.node_features, GraphEdges(graph.nodes, graph.edge_index),
                           columns.tensor, setup.network.schema());
    for (const std::int32_t node : graph.config_nodes) {
      ++all;
      unknown += largest[node] == 0;
    }
  }
  return fmt::format(
      "violation ratio: {:.1f} % of {} configurable nodes are not counted, {}",
      100.0 * static_cast<double>(unknown) / static_cast<double>(std::max<std::int64_t>(all, 1)),
      all,
      columns.tensor == LayoutTensor::output
          ? "because they have no dimensions"
          : "because their operands cannot be told apart or have no dimensions");
}

nlohmann::json list_or_nulls(const std::vector<double>& values) {
  nlohmann::json list = nlohmann::json::array();
  for (const double value : values) list.push_back(finite_or_null(value));
  return list;
}

// [M] the values of members that took the step, null for other members.
nlohmann::json of_stepped(const StepResult& result, const std::vector<double>& values) {
  nlohmann::json list = list_or_nulls(values);
  for (std::size_t m = 0; m < values.size(); ++m) {
    if (!result.stepped[m]) list[m] = nullptr;
  }
  return list;
}

// The parts of a step's time, for the line of the step.
std::string times_text(const std::vector<StepTimes>& ranks, double seconds) {
  const auto percent = [&](double part) { return 100 * part / std::max(seconds, 1e-9); };
  const StepTimes& own = ranks.front();
  std::string text = fmt::format("wait {:.1f} %", percent(own.data_wait));
  if (ranks.size() == 1) return text;
  const auto [slowest, ratio] = straggler(ranks);
  return text +
         fmt::format("  reduce {:.1f} %  rank {} x{:.2f}", percent(own.reduction), slowest, ratio);
}

nlohmann::json to_json(const std::vector<EarlyStopped>& members) {
  nlohmann::json list = nlohmann::json::array();
  for (const EarlyStopped& stopped : members) {
    list.push_back({{"number", stopped.member},
                    {"step", stopped.step},
                    {"best_step", stopped.best_step},
                    {"best_score", finite_or_null(stopped.best_score)},
                    {"best_score_is_optimistic", true}});
  }
  return list;
}

std::string percent_of_rows(const PlanComparison& plans, int depth) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(plans.refined.rows(depth)) /
                                     static_cast<double>(plans.dense_rows));
}

// The effect of refinement on the rows around a layer; "" for a layer that maps each row by itself.
std::string forecast(const LayerRow& layer, bool is_encoder, const PlanComparison& plans) {
  if (plans.dense_rows == 0) return "";
  if (is_encoder) return "rows " + percent_of_rows(plans, 0);
  if (layer.steps == 0) return "";
  return "rows " + percent_of_rows(plans, layer.first_step) + " -> " +
         percent_of_rows(plans, layer.first_step + layer.steps);
}

std::string state_of(const LayerRow& layer, bool refined, const PlanComparison& plans) {
  if (layer.channels == 0) return "scores";
  const std::int64_t rows =
      refined ? plans.refined.rows(layer.first_step + layer.steps) : plans.dense_rows;
  return format_count(rows) + " x " + format_count(layer.channels);
}

// Warns if the last layer makes all sums over nodes equal, and only sums are pooled.
void warn_of_rounding(const NetworkConfig& config, const LayerRow& last) {
  const auto sums = [](const Pool& pool) {
    return !pool.of_config_nodes && pool.aggregation != Aggregation::max;
  };
  if (last.name == "instance_norm" && last.depth == 0 && std::ranges::all_of(config.pools, sums))
    spdlog::warn(
        "model: instance_norm as last layer leaves rounding noise alone to rank by: pool max or "
        "config_sum (model.readout.pool), or put another layer after it");
}

// Whether the setting decides the trained numbers, or the rows that are scored.
bool is_recorded(const std::string& key) {
  return decides_numbers(key) || key == "train.evaluate_rows" || key == "train.last_evaluation";
}

}  // namespace

RunReport::RunReport(const Experiment& experiment, const RunFolder& run, JobContext& context)
    : experiment_(experiment), run_(run), context_(context) {}

void RunReport::start(std::int64_t step) {
  if (!root()) return;
  nlohmann::json settings = nlohmann::json::object();
  for (const ConfigEntry& entry : experiment_.entries) {
    if (is_recorded(entry.key)) settings[entry.key] = entry.value;
  }
  const RunStart now = {
      .step = step,
      .time = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr))),
      .command = command_line(),
      .version = std::string(version()),
      .commit = context_.commit,
      .host = host_name(),
      .processor = processor_name(),
      .ranks = context_.world.size(),
      .threads = context_.pool.threads(),
      .libtorch = libtorch_version(),
      .kernels = cpu_kernels(experiment_.network.precision),
      .device = context_.topology.device < 0 ? "CPU" : context_.topology.gpu.name};
  warn_of_other_program(now);
  nlohmann::json line = now;
  line["kind"] = "start";
  line["settings"] = std::move(settings);
  append(std::move(line));
}

void RunReport::warn_of_other_program(const RunStart& now) const {
  const LearningCurves curves = read_learning_curves(run_.metrics());
  const RunStart* const before = curves.start_of(now.step);
  if (!before) return;
  const std::vector<std::string> changes = program_changes(*before, now);
  if (changes.empty()) return;
  spdlog::warn(
      "{}: resumed by another program or on another kind of processor: {}; from here on the bits "
      "may differ from those of a run that never stopped, and `tpudist diff` shows where",
      run_.path().string(), join(changes, ", "));
}

void RunReport::step(const StepResult& result, const TrainingState& state, double seconds,
                     const StepTimes& times) {
  const TraceSpan span(context_.trace, "report", state.step);
  double loss = 0, norm = 0, count = 0;
  for (std::size_t m = 0; m < result.loss.size(); ++m) {
    if (!result.stepped[m]) continue;
    loss += result.loss[m], norm += result.norm[m], ++count;
  }
  if (count > 0) loss /= count, norm /= count;
  context_.progress.advance(1, fmt::format("loss {:.4f}", loss));
  if (state.step % experiment_.train.log_every != 0) return;
  const std::vector<StepTimes> ranks = gather_times(context_.world, times);
  if (!root()) return;
  context_.progress.line(
      fmt::format("step {:>7}/{}  loss {:>8.4f}  norm {:>8.3g}  lr {:.2e}  {}/step  {}", state.step,
                  experiment_.train.steps, loss, norm, result.rate, format_seconds(seconds),
                  times_text(ranks, seconds)));
  nlohmann::json line = {{"kind", "step"},
                         {"step", state.step},
                         {"first_member", experiment_.ensemble.first_member},
                         {"loss", of_stepped(result, result.loss)},
                         {"norm", of_stepped(result, result.norm)},
                         {"rate", result.rate},
                         {"step_seconds", seconds},
                         {"wait_seconds", times.data_wait},
                         {"train_seconds", state.train_seconds}};
  line.update(times_json(ranks));
  append(std::move(line));
}

void RunReport::evaluation(const Evaluation& evaluation, const TrainingState& state) {
  if (!root()) return;
  const std::vector<double> means = evaluation.member_means();
  const std::int64_t rows = evaluation.most_rows;
  std::string members;
  for (const double mean : means) members += fmt::format(" {:.4f}", mean);
  context_.progress.line(
      fmt::format("step {:>7}  {}{} {} ensemble {:.4f}  members{}  after {} of training",
                  state.step, evaluation.is_tile ? "tile score" : "Kendall tau",
                  evaluation.held_out_only ? " out of fold" : "",
                  rows > 0 ? fmt::format("(at most {} rows a graph)", rows) : "(all rows)",
                  evaluation.ensemble_mean(), members, format_seconds(state.train_seconds)));
  append({{"kind", "evaluation"},
          {"split", "valid"},
          {"step", state.step},
          {"rows", rows},
          {"held_out_only", evaluation.held_out_only},
          {"first_member", experiment_.ensemble.first_member},
          {"members", list_or_nulls(means)},
          {"ensemble", finite_or_null(evaluation.ensemble_mean())},
          {"train_seconds", state.train_seconds}});
}

void RunReport::append(nlohmann::json record) {
  lines_.push_back(std::move(record));
  try {
    write_lines();
  } catch (const IoError& error) {
    if (lines_.size() == 1) {
      spdlog::warn("{}; training goes on, and the lines are written when that is possible again",
                   error.what());
    }
  }
}

void RunReport::write_lines() {
  for (; !lines_.empty(); lines_.pop_front()) run_.append_metrics(lines_.front());
}

void RunReport::finish() {
  try {
    write_lines();
  } catch (const IoError& error) {
    spdlog::warn("{}; the log lacks {}", error.what(), counted(std::ssize(lines_), "line"));
  }
}

void RunReport::scores(const std::optional<Evaluation>& evaluation,
                       const std::vector<EarlyStopped>& stopped, const nlohmann::json& out_of_fold,
                       std::uint64_t parameters, std::optional<std::uint64_t> init) const {
  run_on_first_rank(context_.world, [&] {
    if (!evaluation && out_of_fold.is_null()) return;
    nlohmann::json scores = evaluation ? evaluation_json(*evaluation) : nlohmann::json::object();
    if (evaluation && experiment_.train.early_stop.patience > 0)
      scores["stopped_early"] = to_json(stopped);
    if (!out_of_fold.is_null()) scores["out_of_fold"] = out_of_fold;
    scores["parameters"] = to_hex(parameters);
    if (init) scores["init_weights"] = to_hex(*init);
    write_file_atomically(run_.scores(), json_text(scores, 2) + "\n");
  });
}

std::vector<std::string> layer_lines(const TrainingSetup& setup, const PlanComparison& plans) {
  const Network& network = setup.network;
  const std::vector<LayerRow> layers =
      layer_table(network.config(), network.schema(), network.parameters());
  warn_of_rounding(network.config(), layers.at(layers.size() - 2));
  const bool refined = setup.units.takes_refined(plans);
  std::size_t width = 0;
  for (const LayerRow& layer : layers)
    width = std::max(width, layer.name.size() + 2 * static_cast<std::size_t>(layer.depth));
  std::vector<std::string> lines;
  for (const LayerRow& layer : layers) {
    const std::string name =
        std::string(2 * static_cast<std::size_t>(layer.depth), ' ') + layer.name;
    std::string line =
        fmt::format("{:<{}}  {:>9}  {:>16}  {}", name, width, format_count(layer.parameters),
                    state_of(layer, refined, plans), forecast(layer, lines.empty(), plans));
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  if (network.config().head.violations) lines.push_back(uncounted_line(setup));
  return lines;
}

}  // namespace tpudist
