#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "data/hlo/layout_configs.hpp"
#include "data/loading/seen_graphs.hpp"
#include "data/npz/zip_archive.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/scoring_options.hpp"
#include "launch/program/output.hpp"
#include "launch/sweep/sweep_folder.hpp"
#include "train/scoring/module_ranking.hpp"

namespace tpudist {
namespace {

struct RankArguments : ScoringArguments {
  std::filesystem::path file;
  std::string module;  // of a file with several
  ConfigRequest request;
  std::vector<std::filesystem::path> runs;
  JudgementArguments judgement;
  std::int64_t top = 10;
  bool json = false;
  std::string apply;  // "jax", "text" or empty
};

// The option, and the content of the file that it names.
std::string content_of(const std::filesystem::path& option) {
  std::error_code error;
  const bool file = std::filesystem::is_regular_file(option, error);
  return option.string() + (file ? " " + to_hex(hash_file(option)) : "");
}

std::vector<AgreedValue> values_to_agree(const RankArguments& arguments) {
  return {{"the command", "rank"},
          {"the file", arguments.file.string()},
          {"the content of the file", to_hex(hash_file(arguments.file))},
          {"--module", arguments.module},
          {"--configs", content_of(arguments.request.configs)},
          {"--default", content_of(arguments.request.assigned)},
          {"--combine", arguments.judgement.rule},
          {"--keep-all", arguments.judgement.keep_all ? "yes" : "no"},
          {"--temperature", std::to_string(arguments.judgement.temperature)}};
}

std::size_t taking_part(const ModuleRanking& result) {
  return static_cast<std::size_t>(std::ranges::count_if(
      result.members, [](const auto& member) { return member.why_left_out.empty(); }));
}

void print_header(const RankArguments& arguments, const Module& module,
                  const std::vector<TrainedRun>& runs, const ModuleRanking& result) {
  const Graph& graph = module.dataset.graph(0);
  const std::int64_t whole = module.dataset.entry(0).nodes, seen = module.dataset.seen_nodes(0);
  print("{}: {}{}, {}, {} distinct\n", printable(graph.name), counted(seen, "node"),
        seen == whole ? "" : fmt::format(" of {} (data.reduce)", format_count(whole)),
        counted(module.dataset.rows(0), "configuration"), format_count(std::ssize(result.ranking)));
  print("ranked by {} of {} ({}):", taking_part(result),
        counted(std::ssize(result.members), "member"), arguments.judgement.rule);
  for (const TrainedRun& run : runs) print(" {} {}", run.path, opened_at(run));
  print("\n");
}

void print_ranking(const ModuleRanking& result, std::size_t count) {
  print("\n{:>6} {:>8} {:>6} {:>14} {:>9} {:>17}\n", "rank", "config", "equal", "score",
        "deviation", "members' ranks");
  for (std::size_t k = 0; k < count; ++k) {
    const ModuleRanking::Config& config = result.ranking[k];
    print(
        "{:>6} {:>8} {:>6} {:>14.7g} {:>9} {:>17}\n", k + 1, config.configs.front(),
        config.configs.size(), config.score,
        std::isnan(config.spread.deviation) ? "-" : fmt::format("{:.4f}", config.spread.deviation),
        fmt::format("{} .. {}", config.spread.best_rank, config.spread.worst_rank));
  }
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

// Prints the best made configuration in a form to apply.
void print_constraints(const RankArguments& arguments, const Module& module,
                       const ModuleRanking& result) {
  const std::int64_t best = result.ranking.front().configs.front();
  const std::string title = fmt::format(
      "{}: configuration {}, the fastest of {} by {}", arguments.file.filename().string(), best,
      result.ranking.size(), counted(static_cast<std::int64_t>(taking_part(result)), "member"));
  const LayoutConfig& config = module.made->configs[best];
  const auto text = arguments.apply == "jax" ? jax_constraints : layout_config_text;
  print("{}", text(module.made->space, config, title));
}

// A made configuration in the format of --configs FILE.
nlohmann::ordered_json layouts_json(const MadeConfigs& made, std::int64_t number) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const LayoutConfig& config = made.configs[number];
  for (std::size_t i = 0; i < config.size(); ++i) {
    const ConfigurableNode& node = made.space.nodes[i];
    auto& layouts = json[node.name] = nlohmann::ordered_json::array();
    for (int tensor = 0; tensor < kTensors; ++tensor)
      layouts.push_back(tensor_layout(node.states[config[i]], tensor));
  }
  return json;
}

nlohmann::ordered_json to_json(const RankArguments& arguments, const Module& module,
                               const std::vector<TrainedRun>& runs, const ModuleRanking& result,
                               std::size_t count) {
  const Graph& graph = module.dataset.graph(0);
  nlohmann::ordered_json json = {
      {"file", arguments.file.string()},
      {"graph", graph.name},
      {"kind", module.dataset.options().collection.is_tile() ? "tile" : "layout"},
      {"nodes", graph.nodes},
      {"configs", module.dataset.rows(0)},
      {"distinct_configs", result.ranking.size()},
      {"combine", arguments.judgement.rule},
      {"kendall_tau", finite_or_null(result.kendall_tau)},
      {"runs", nlohmann::ordered_json::array()},
      {"members", nlohmann::ordered_json::array()},
      {"ranking", nlohmann::ordered_json::array()}};
  for (const TrainedRun& run : runs)
    json["runs"].push_back(
        {{"run", run.path.string()}, {"step", run.step}, {"averaged", run.averaged}});
  for (const auto& member : result.members) {
    nlohmann::ordered_json entry = {{"run", member.run.string()},
                                    {"member", member.member},
                                    {"used", member.why_left_out.empty()}};
    if (!member.why_left_out.empty()) entry["why_left_out"] = member.why_left_out;
    json["members"].push_back(std::move(entry));
  }
  for (std::size_t k = 0; k < count; ++k) {
    const ModuleRanking::Config& config = result.ranking[k];
    json["ranking"].push_back({{"rank", k + 1},
                               {"config", config.configs.front()},
                               {"equal_configs", config.configs},
                               {"score", config.score},
                               {"deviation", finite_or_null(config.spread.deviation)},
                               {"best_rank", config.spread.best_rank},
                               {"worst_rank", config.spread.worst_rank}});
    if (module.made)
      json["ranking"].back()["layouts"] = layouts_json(*module.made, config.configs.front());
  }
  return json;
}

// Warns once if the module lies outside of a run's training graphs. Runs of older versions did not
// record these.
void warn_of_distance(const RankArguments& arguments, const Module& module,
                      const std::vector<TrainedRun>& runs) {
  const SeenGraphs own = seen_graphs(module.dataset);
  std::set<std::string> told;
  for (const TrainedRun& run : runs) {
    const std::filesystem::path file = run.path / kSeenGraphsFile;
    try {
      if (!std::filesystem::exists(file)) continue;
      const SeenGraphs seen = read_seen_graphs(file);
      const std::string known = seen.trained_on.text(module.dataset);
      if (!known.empty() && told.insert(known).second)
        spdlog::warn("{} was {}", run.path.string(), known);
      const std::string unseen = unseen_text(own, seen, run.experiment.data.collection.schema);
      if (!unseen.empty() && told.insert(unseen).second)
        spdlog::warn("{} lies outside of what {} was trained on: {}", arguments.file.string(),
                     run.path.string(), unseen);
    } catch (const Error& error) {
      spdlog::warn("{}", error.what());
    }
  }
}

void run(const RankArguments& arguments) {
  const JudgementOptions judgement = arguments.judgement.options();
  if (arguments.request.configs.empty() &&
      (!arguments.apply.empty() || !arguments.request.assigned.empty()))
    throw ConfigError(
        "--configs is empty; give default, neighbours, random:N, random:N:SEED or a JSON file");
  std::vector<TrainedRun> runs;
  require_searchable(arguments.file);  // before hashing, which would read all of the file
  for (const auto& path : run_folders(arguments.runs)) runs.push_back(arguments.open(path));
  std::vector<const TrainedRun*> all;
  for (const TrainedRun& run : runs) all.push_back(&run);
  const GraphReduction reduction = scored_reduction(all);
  run_job(arguments.job_options(values_to_agree(arguments), runs), [&](JobContext& context) {
    const Module module = read_module(arguments.file, runs.front().experiment.data.collection,
                                      reduction, arguments.module, arguments.request);
    if (context.world.rank() == 0) warn_of_distance(arguments, module, runs);
    ModuleRanking result = rank_module(module, runs, judgement, context);
    if (context.world.rank() != 0) return;
    for (auto& config : result.ranking) {
      for (std::int64_t& number : config.configs) number = module.number_of(number);
    }
    const std::size_t all = result.ranking.size();
    const std::size_t count =
        arguments.top == 0 ? all : std::min(all, static_cast<std::size_t>(arguments.top));
    for (const auto& member : result.members) {
      if (!member.why_left_out.empty())
        spdlog::warn("{} member {} left out: {}", member.run.string(), member.member,
                     member.why_left_out);
    }
    if (!arguments.apply.empty()) return print_constraints(arguments, module, result);
    if (arguments.json) return print_json(to_json(arguments, module, runs, result, count));
    print_header(arguments, module, runs, result);
    print_ranking(result, count);
    print_best(module, result);
    print_tau(module, result);
  });
}

}  // namespace

void add_rank_command(Command app) {
  auto arguments = std::make_shared<RankArguments>();
  const Command command =
      app.add_command("rank", "Rank the configurations of a new module straight from its file");
  command.footer(
      "Needs no conversion and no run times. The file has the arrays that `tpudist convert` takes; "
      "config_runtime\n"
      "may be missing or all 0, and where it is there Kendall tau is told. Equal configurations "
      "are listed once.\n"
      "Beside each: the standard deviation of the members' z-scores, and the ranks that they give "
      "it.\n\n"
      "With --configs the file is a module of HLO (proto or text, before layout assignment), and "
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
      .add_option("--default", arguments->request.assigned,
                  "The same program after layout assignment, for the default layouts")
      .existing_file()
      .needs(configs);
  command
      .add_option(
          "--run", arguments->runs,
          "Folders of runs, or SWEEP:N for those of a variant; all their members rank together")
      .required();
  add_run_options(command, *arguments);
  add_combination_options(command, arguments->judgement);
  add_keep_all_option(command, arguments->judgement.keep_all);
  command.add_option("--top", arguments->top, "How many configurations to list; 0: all")
      .not_negative()
      .show_default();
  const Option json = command.add_flag("--json", arguments->json, "Print JSON");
  command
      .add_option(
          "--apply", arguments->apply,
          "Print only the best configuration, to apply: jax (Python) or text (LayoutConfig)")
      .one_of({"jax", "text"})
      .needs(configs)
      .excludes(json);
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
