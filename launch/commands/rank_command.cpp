#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/ranking_output.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

struct RankArguments : RankingArguments {
  std::string module;  // of a file with several
  ConfigRequest request;
  std::int64_t top = 10, next = 10;
};

// What is told of a ranking beside its scores.
struct Findings {
  std::optional<std::size_t> standard;  // place of the default configuration
  std::vector<PredictedGain> gains;     // [c] over the default; empty without one
  KnownGain known;                      // of the members alone
  MeasurementAdvice advice;
  std::optional<MeasuredFile> measured;
  MeasuredCorrection correction;     // if measured; in the order of the ranking
  std::vector<std::size_t> propose;  // if measured: places to measure next
  std::int64_t left = 0;             // if measured: configurations without a time
};

void print_header(const RankArguments& arguments, const Module& module,
                  const std::vector<TrainedRun>& runs, const ModuleRanking& result) {
  const Graph& graph = module.dataset.graph(0);
  const std::int64_t whole = module.dataset.entry(0).nodes, seen = module.dataset.seen_nodes(0);
  print("{}: {}{}, {}, {} distinct\n", printable(graph.name), counted(seen, "node"),
        seen == whole ? "" : fmt::format(" of {} (data.reduce)", format_count(whole)),
        counted(module.dataset.rows(0), "configuration"), format_count(std::ssize(result.ranking)));
  print("ranked by {} of {} ({}):", taking_part(result.members),
        counted(std::ssize(result.members), "member"), arguments.judgement.rule);
  for (const TrainedRun& run : runs) print(" {} {}", run.path, opened_at(run));
  print("\n");
}

// "5/5": how many members call it faster than the default.
void print_config(const ModuleRanking& result, const Findings& findings, std::size_t k) {
  const ModuleRanking::Config& config = result.ranking[k];
  print("{:>6} {:>8} {:>6} {:>14.7g} {:>9} {:>17}", k + 1, config.configs.front(),
        config.configs.size(), config.score,
        std::isnan(config.spread.deviation) ? "-" : fmt::format("{:.4f}", config.spread.deviation),
        fmt::format("{} .. {}", config.spread.best_rank, config.spread.worst_rank));
  if (findings.standard)
    print(" {:>9.4f} {:>7}", findings.gains[k].mean,
          fmt::format("{}/{}", findings.gains[k].faster, config.spread.z_scores.size()));
  if (findings.measured) {
    const double time = findings.correction.times[k];
    print(" {:>12}", std::isnan(time) ? "-" : fmt::format("{:.7g}", time));
  }
  print("{}\n", findings.standard == k ? "  default" : "");
}

void print_ranking(const ModuleRanking& result, const Findings& findings, std::size_t count) {
  print("\n{:>6} {:>8} {:>6} {:>14} {:>9} {:>17}{}{}\n", "rank", "config", "equal", "score",
        "deviation", "members' ranks",
        findings.standard ? fmt::format(" {:>9} {:>7}", "gain", "faster") : "",
        findings.measured ? fmt::format(" {:>12}", "measured") : "");
  for (std::size_t k = 0; k < count; ++k) print_config(result, findings, k);
  if (findings.standard && *findings.standard >= count)
    print_config(result, findings, *findings.standard);
}

// The best against the default: by times if both are measured, else by the members alone.
std::string best_text(const RankArguments& arguments, const Module& module,
                      const ModuleRanking& result, const Findings& findings) {
  if (!findings.standard)
    return module.made ? fmt::format(
                             "{} lacks the default layouts; add an empty entry {{}} to see "
                             "the gain over them\n",
                             arguments.request.configs)
                       : "the file has no default run; --default N names one\n";
  const bool assumed = arguments.standard.empty() && !module.made && module.config_numbers.empty();
  const std::string standard = fmt::format("the default, configuration {}{}",
                                           result.ranking[*findings.standard].configs.front(),
                                           assumed ? " (--default N names another)" : "");
  if (*findings.standard == 0) return fmt::format("ranked first is {}\n", standard);
  if (findings.measured) {
    const double time = findings.correction.times.front(),
                 of_default = findings.correction.times[*findings.standard];
    if (!std::isnan(time) && !std::isnan(of_default))
      return fmt::format("measured: the best takes {:.2f} % less time than {}\n",
                         100 * (1 - time / of_default), standard);
  }
  const PredictedGain& gain = findings.gains.front();
  const auto members = std::ssize(result.ranking.front().spread.z_scores);
  return fmt::format(
             "predicted gain of the best over {}: {:.4f} of the list's standard deviations; {} of "
             "{} call it faster{}\n",
             standard, gain.mean, gain.faster, counted(members, "member"),
             std::isnan(gain.deviation) ? ""
                                        : fmt::format(", SD between them {:.4f}", gain.deviation)) +
         (findings.measured ? "" : known_text(findings.known, members));
}

std::string next_text(const ModuleRanking& result, const Findings& findings) {
  if (findings.left == 0) return "next to measure: none is left\n";
  if (findings.propose.empty()) return {};  // --next 0
  std::string text = "next to measure:";
  for (const std::size_t k : findings.propose)
    text += fmt::format(" {}", result.ranking[k].configs.front());
  return text + "\n";
}

void print_tau(const Module& module, const ModuleRanking& result) {
  if (!module.has_times) return;
  print("\nKendall tau with the run times of the file, over all configurations: {}\n",
        std::isnan(result.kendall_tau) ? "undefined, they or the scores are all equal"
                                       : fmt::format("{:.4f}", result.kendall_tau));
}

// Prints the instructions at which the best made configuration differs from the default.
void print_best(const Module& module, const ModuleRanking& result) {
  if (!module.made) return;
  const std::int64_t best = result.ranking.front().configs.front();
  const LayoutConfig& config = module.made->configs[best];
  print("\nconfiguration {} in place of the default layouts (dimensions minor to major):\n", best);
  bool any = false;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const ConfigurableNode& node = module.made->space.nodes[i];
    if (config[i] == node.standard) continue;
    any = true;
    print("  {}: {}, default {}\n", node.name, layout_text(node.opcode, node.states[config[i]]),
          layout_text(node.opcode, node.states[node.standard]));
  }
  if (!any) print("  none: it is the default\n");
}

// Prints a made configuration in a form to apply.
void print_constraints(const RankArguments& arguments, const Module& module,
                       const ModuleRanking& result) {
  const std::int64_t best = result.ranking[arguments.apply_rank - 1].configs.front();
  const std::string place =
      arguments.apply_rank == 1 ? "the fastest" : fmt::format("rank {}", arguments.apply_rank);
  print("{}", arguments.applied(*module.made, best,
                                fmt::format("configuration {}, {} of {} by {}", best, place,
                                            result.ranking.size(),
                                            counted(taking_part(result.members), "member"))));
}

nlohmann::ordered_json config_json(const Module& module, const ModuleRanking& result,
                                   const Findings& findings, std::size_t k) {
  const ModuleRanking::Config& config = result.ranking[k];
  nlohmann::ordered_json json = {{"rank", k + 1},
                                 {"config", config.configs.front()},
                                 {"equal_configs", config.configs},
                                 {"score", config.score},
                                 {"deviation", finite_or_null(config.spread.deviation)},
                                 {"best_rank", config.spread.best_rank},
                                 {"worst_rank", config.spread.worst_rank}};
  if (findings.standard)
    json["gain"] = {{"mean", findings.gains[k].mean},
                    {"deviation", finite_or_null(findings.gains[k].deviation)},
                    {"faster", findings.gains[k].faster}};
  if (findings.standard == k) json["default"] = true;
  if (findings.measured && !std::isnan(findings.correction.times[k]))
    json["time"] = findings.correction.times[k];
  if (module.made) json["layouts"] = layouts_json(*module.made, config.configs.front());
  return json;
}

nlohmann::ordered_json to_json(const RankArguments& arguments, const Module& module,
                               const std::vector<TrainedRun>& runs, const ModuleRanking& result,
                               const Findings& findings, std::size_t count) {
  nlohmann::ordered_json json = ranking_json(arguments, module, runs, result.members);
  json["configs"] = module.dataset.rows(0);
  json["distinct_configs"] = result.ranking.size();
  json["kendall_tau"] = finite_or_null(result.kendall_tau);
  if (!findings.measured) json["advice"] = findings.advice.json();
  json["default"] = nullptr;
  json["ranking"] = nlohmann::ordered_json::array();
  if (findings.standard) {
    json["default"] = config_json(module, result, findings, *findings.standard);
    json["default"]["best_is_better"] = findings.known.is_better();
  }
  if (findings.measured) {
    auto& measured = json["measured"] = measured_json(findings.correction, *findings.measured);
    measured["next"] = nlohmann::ordered_json::array();
    for (const std::size_t k : findings.propose)
      measured["next"].push_back(config_json(module, result, findings, k));
  }
  for (std::size_t k = 0; k < count; ++k)
    json["ranking"].push_back(config_json(module, result, findings, k));
  return json;
}

// Orders the ranking by its corrected scores.
void take_measurements(const RankArguments& arguments, const Module& module, ModuleRanking& result,
                       Findings& findings) {
  std::vector<ModuleRanking::Config>& ranking = result.ranking;
  std::vector<double> scores;
  std::vector<std::size_t> places(static_cast<std::size_t>(module.dataset.rows(0)));  // of rows
  for (const auto& config : ranking) {
    for (const std::int64_t row : config.configs) places[row] = scores.size();
    scores.push_back(config.score);
  }
  for (Measurement& own : findings.measured->measurements) own.config = places[own.config];
  MeasuredCorrection& correction = findings.correction;
  correction = correct_by_measurements(scores, ranked_states(module, ranking),
                                       findings.measured->measurements);
  std::vector<std::size_t> order(ranking.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return correction.scores[k]; });
  const auto sort = [&](auto& values) {
    auto sorted = values;
    for (std::size_t place = 0; place < order.size(); ++place)
      sorted[place] = std::move(values[order[place]]);
    values = std::move(sorted);
  };
  sort(ranking);
  sort(correction.scores);
  sort(correction.times);
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (!std::isnan(correction.times[k])) continue;
    if (findings.left++ < arguments.next) findings.propose.push_back(k);
  }
}

// Adds what is told beside the scores, and puts the file's numbers in place of rows.
Findings findings_of(const RankArguments& arguments, const Module& module,
                     const std::vector<TrainedRun>& runs, std::optional<MeasuredFile> measured,
                     ModuleRanking& result) {
  Findings findings;
  findings.measured = std::move(measured);
  if (findings.measured)
    take_measurements(arguments, module, result, findings);
  else
    findings.advice = advice_of(arguments, runs, result.members);
  std::vector<MemberSpread> spreads;
  for (const auto& config : result.ranking) {
    if (module.standard &&
        std::ranges::find(config.configs, *module.standard) != config.configs.end())
      findings.standard = spreads.size();
    spreads.push_back(config.spread);
  }
  if (findings.standard) {
    findings.known = known_gain(spreads, *findings.standard);
    for (const MemberSpread& spread : spreads)
      findings.gains.push_back(
          predicted_gain(spreads[*findings.standard].z_scores, spread.z_scores));
  }
  for (auto& config : result.ranking) {
    for (std::int64_t& number : config.configs) number = module.number_of(number);
  }
  return findings;
}

void run(RankArguments arguments) {
  if (!arguments.request.configs.empty()) {
    arguments.request.assigned = arguments.standard;
    if (!arguments.standard.empty() && !names_file(arguments.standard))
      refuse_value("--default", arguments.standard +
                                    " is no file: with --configs give the same program after "
                                    "layout assignment");
  } else if (!arguments.standard.empty() && !number_of<std::int64_t>(arguments.standard)) {
    refuse_value(
        "--default",
        arguments.standard + " is no number of a configuration, which it is without --configs");
  }
  if (arguments.request.configs.empty() && !arguments.apply.empty())
    throw ConfigError(
        "--configs is empty; give default, neighbours, random:N, random:N:SEED or a JSON file");
  std::vector<AgreedValue> agreed = {{"the command", "rank"},
                                     {"--module", arguments.module},
                                     {"--configs", content_of(arguments.request.configs)}};
  const auto rank = [&](const Module& module, const std::vector<TrainedRun>& runs,
                        JobContext& context) {
    // Bad input is refused before the work.
    std::optional<MeasuredFile> measured;
    run_on_first_rank(context.world, [&] {
      const auto distinct = std::ranges::max(module.dataset.run_times(0).group) + 1;
      if (arguments.apply_rank > distinct)
        throw ConfigError(fmt::format("--apply-rank {}: the list has {}", arguments.apply_rank,
                                      counted(distinct, "distinct configuration")));
      if (!arguments.measured.empty())
        measured = read_measured(arguments.measured, module, arguments.module);
    });
    ModuleRanking result = rank_module(module, runs, arguments.judgement.options(), context);
    if (context.world.rank() != 0) return;
    const Findings findings = findings_of(arguments, module, runs, std::move(measured), result);
    const std::size_t all = result.ranking.size();
    const std::size_t count =
        arguments.top == 0 ? all : std::min(all, static_cast<std::size_t>(arguments.top));
    warn_of_left_out(result.members);
    if (!arguments.apply.empty()) return print_constraints(arguments, module, result);
    if (arguments.json)
      return print_json(to_json(arguments, module, runs, result, findings, count));
    print_header(arguments, module, runs, result);
    print_ranking(result, findings, count);
    print("\n{}", best_text(arguments, module, result, findings));
    if (findings.measured)
      print("{}{}",
            measured_text(findings.correction, *findings.measured, std::ssize(result.ranking)),
            next_text(result, findings));
    else
      print("{}", findings.advice.text(std::ssize(result.ranking)));
    print_best(module, result);
    print_tau(module, result);
  };
  run_on_module(arguments, std::move(agreed), arguments.module, arguments.request, rank);
}

}  // namespace

void add_rank_command(Command app) {
  auto arguments = std::make_shared<RankArguments>();
  const Command command =
      app.add_command("rank", "Rank the configurations of a new module straight from its file");
  command.footer(
      "Needs no conversion and no run times. The file has the arrays that `tpudist convert` takes; "
      "config_runtime\n"
      "may be missing or all 0. With run times the output has Kendall tau. Equal configurations "
      "are listed once.\n"
      "Beside each: the standard deviation of the members' z-scores, and its ranks by the "
      "members.\n\n"
      "With --configs the file is a module of HLO (before layout assignment), and "
      "its layouts are\n"
      "made: the default ones, all that differ from them in one group of operations, N random "
      "ones, or those of\n"
      "a JSON file, a list of {\"instruction\": [output, operand, operand]} with dimensions minor "
      "to major.\n\n"
      "Example:\n  tpudist rank resnet.npz --run runs/xla-1 runs/xla-2 --top 20\n"
      "  tpudist rank before.hlo.pb --configs random:1000 --default after.hlo.pb --run runs/xla-1");
  command
      .add_option("file", arguments->file,
                  "NPZ file of the module, a tuning file (.pb) of TpuGraphs, or with --configs HLO")
      .required()
      .existing_file();
  command.add_option("--module", arguments->module,
                     "Of a file with several modules: which, e.g. fusion.206_10");
  const Option configs =
      command
          .add_option("--configs", arguments->request.configs,
                      "Rank made layouts: default, neighbours, random:N[:SEED] or a JSON file")
          .offers({"default", "neighbours", "random:N", "FILE"});
  command
      .add_option("--default", arguments->standard,
                  "The default: with --configs the same program after layout assignment; else the "
                  "number of a configuration")
      .offers({"N", "FILE"});
  add_ranking_options(command, *arguments).needs(configs);
  command.add_option("--top", arguments->top, "How many configurations to list; 0: all")
      .not_negative()
      .show_default();
  command
      .add_option("--next", arguments->next, "With --measured: how many to propose to measure next")
      .not_negative()
      .show_default();
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
