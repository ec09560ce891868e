#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "data/npz/zip_archive.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/ranking_output.hpp"
#include "launch/commands/scoring_options.hpp"
#include "launch/program/output.hpp"
#include "launch/sweep/sweep_folder.hpp"
#include "statistics/ranking/predicted_gain.hpp"
#include "train/scoring/module_search.hpp"

namespace tpudist {
namespace {

struct SearchArguments : ScoringArguments {
  std::filesystem::path file;
  std::string standard;  // --default
  std::vector<std::filesystem::path> runs;
  JudgementArguments judgement;
  SearchOptions search;
  std::int64_t propose = 10, starts = 8, seed = 1, apply_rank = 1;
  bool free = false, json = false;
  std::string apply;  // "jax", "text" or empty
};

std::vector<AgreedValue> values_to_agree(const SearchArguments& arguments) {
  const SearchOptions& search = arguments.search;
  return {
      {"the command", "search"},
      {"the file", arguments.file.string()},
      {"the content of the file", to_hex(hash_file(arguments.file))},
      {"--default", content_of(arguments.standard)},
      {"--combine", arguments.judgement.to_text()},
      {"the options of the search", fmt::format("{} {} {} {} {}", search.evaluations, search.starts,
                                                search.propose, search.seed, arguments.free)}};
}

// A configuration that is listed: the default, number 0, or a proposal.
struct Listed {
  const ModuleRanking::Config* config;
  PredictedGain gain;  // over the default, on the list
};

// [number]
std::vector<Listed> listed(const ModuleRanking& ranking) {
  std::vector<Listed> all(ranking.ranking.size());
  for (const auto& config : ranking.ranking)
    all[static_cast<std::size_t>(config.configs.front())].config = &config;
  for (Listed& own : all)
    own.gain = predicted_gain(all[0].config->spread.z_scores, own.config->spread.z_scores);
  return all;
}

std::string pessimism_text(const ModuleSearch& search) {
  return fmt::format("pessimism {} ({})", search.pessimism.share,
                     search.pessimism.graphs > 0
                         ? fmt::format("chosen on {} that members had not seen",
                                       counted(search.pessimism.graphs, "measured graph"))
                         : "without predictions.h5 to choose by");
}

void print_found(const SearchArguments& arguments, const std::vector<TrainedRun>& runs,
                 const ModuleSearch& search) {
  const Graph& graph = search.listed.dataset.graph(0);
  const ModuleRanking& ranking = search.ranking;
  const SearchResult& found = search.found;
  print("{}: {}, {} of operations that change together{}, {:.4g} configurations\n",
        printable(graph.name), counted(graph.nodes, "node"),
        counted(std::ssize(search.listed.made->space.groups), "group"),
        arguments.free ? " (left by --free)" : "", search.configs);
  print("searched by {} of {} ({}):", taking_part(ranking),
        counted(std::ssize(ranking.members), "member"), arguments.judgement.rule);
  for (const TrainedRun& run : runs) print(" {} {}", run.path, opened_at(run));
  print("\n{}, {} distinct, from {}; {}\n", counted(found.evaluations, "evaluation"),
        format_count(found.distinct), counted(arguments.search.starts, "start"),
        pessimism_text(search));
  print("\n{:>6} {:>9} {:>14} {:>9} {:>9} {:>7} {:>7}{}\n", "rank", "estimate", "score",
        "deviation", "gain", "faster", "groups",
        arguments.free ? fmt::format(" {:>7}", "broken") : "");
  const std::vector<Listed> all = listed(ranking);
  const auto row = [&](const std::string& rank, const std::string& estimate, std::size_t number) {
    const auto& [config, gain] = all[number];
    print("{:>6} {:>9} {:>14.7g} {:>9} {:>9.4f} {:>7} {:>7}{}\n", rank, estimate, config->score,
          std::isnan(config->spread.deviation) ? "-"
                                               : fmt::format("{:.4f}", config->spread.deviation),
          gain.mean, fmt::format("{}/{}", gain.faster, config->spread.z_scores.size()),
          number == 0 ? 0 : search.changed[number - 1],
          !arguments.free
              ? ""
              : fmt::format(" {:>5.1f} %", number == 0 ? 0 : 100 * search.broken[number - 1]));
  };
  for (std::size_t k = 1; k < all.size(); ++k)
    row(std::to_string(k), fmt::format("{:.4f}", found.scores[k - 1].score), k);
  row("-", fmt::format("{:.4f}", found.standard.score), 0);
  print("the last row is the default; proposals differ from each other in {} or more\n",
        counted(found.apart, arguments.free ? "operation" : "group"));
  if (arguments.free)
    print(
        "broken: operations whose layouts are not those of their group; no program in training had "
        "any, so trust these scores less\n");
  if (found.proposals.empty() || found.scores.front().score >= found.standard.score)
    print("no better than the default, as far as this ensemble knows\n");
}

nlohmann::ordered_json to_json(const SearchArguments& arguments,
                               const std::vector<TrainedRun>& runs, const ModuleSearch& search) {
  const SearchResult& found = search.found;
  nlohmann::ordered_json json = {{"file", arguments.file.string()},
                                 {"graph", search.listed.dataset.graph(0).name},
                                 {"kind", "layout"},
                                 {"nodes", search.listed.dataset.graph(0).nodes},
                                 {"configs", search.configs},
                                 {"evaluations", found.evaluations},
                                 {"distinct_configs", found.distinct},
                                 {"starts", arguments.search.starts},
                                 {"pessimism", search.pessimism.share},
                                 {"pessimism_chosen_on", search.pessimism.graphs},
                                 {"apart", found.apart},
                                 {"combine", arguments.judgement.rule}};
  add_members(json, runs, search.ranking);
  json["ranking"] = nlohmann::ordered_json::array();
  const std::vector<Listed> all = listed(search.ranking);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto& [config, gain] = all[k];
    const PointScore& estimate = k == 0 ? found.standard : found.scores[k - 1];
    nlohmann::ordered_json entry = {{"rank", k},
                                    {"estimate", estimate.score},
                                    {"score", config->score},
                                    {"deviation", finite_or_null(config->spread.deviation)},
                                    {"gain",
                                     {{"mean", gain.mean},
                                      {"deviation", finite_or_null(gain.deviation)},
                                      {"faster", gain.faster}}},
                                    {"changed_groups", k == 0 ? 0 : search.changed[k - 1]}};
    if (arguments.free) entry["broken"] = k == 0 ? 0 : search.broken[k - 1];
    if (k == 0) entry["default"] = true;
    entry["layouts"] = layouts_json(*search.listed.made, static_cast<std::int64_t>(k));
    json["ranking"].push_back(std::move(entry));
  }
  return json;
}

void run(SearchArguments arguments) {
  const JudgementOptions judgement = arguments.judgement.options();
  arguments.search.propose = static_cast<int>(arguments.propose);
  arguments.search.starts = static_cast<int>(arguments.starts);
  arguments.search.seed = static_cast<std::uint64_t>(arguments.seed);
  if (arguments.search.evaluations < arguments.starts)
    throw ConfigError(fmt::format("--evaluations {}: are fewer than one for each of --starts {}",
                                  arguments.search.evaluations, arguments.starts));
  require_searchable(arguments.file);  // before hashing, which would read all of the file
  ConfigRequest request;
  const bool is_file = std::filesystem::is_regular_file(arguments.standard);
  if (is_file || !holds_npz(arguments.file)) {
    request.configs = "default";
    request.assigned = arguments.standard;
  }
  if (!arguments.standard.empty() && !is_file &&
      (!request.configs.empty() || !number_of<std::int64_t>(arguments.standard)))
    refuse_value("--default", arguments.standard +
                                  " is neither the program after layout assignment nor the number "
                                  "of a configuration in the file");
  std::vector<TrainedRun> runs;
  for (const auto& path : run_folders(arguments.runs)) runs.push_back(arguments.open(path));
  std::vector<const TrainedRun*> all;
  for (const TrainedRun& run : runs) all.push_back(&run);
  run_job(arguments.job_options(values_to_agree(arguments), runs), [&](JobContext& context) {
    Module module = read_module(arguments.file, runs.front().experiment.data.collection,
                                scored_reduction(all), {}, request);
    module.standard = standard_row(arguments.standard, arguments.file, module);
    if (context.world.rank() == 0) warn_of_distance(arguments.file, module, runs);
    const ModuleSearch search =
        search_module(module, runs, judgement, arguments.search, arguments.free, context);
    if (context.world.rank() != 0) return;
    warn_of_left_out(search.ranking);
    if (arguments.json) return print_json(to_json(arguments, runs, search));
    if (arguments.apply.empty()) return print_found(arguments, runs, search);
    if (arguments.apply_rank > std::ssize(search.found.proposals))
      throw ConfigError(fmt::format("--apply-rank {}: the search proposes {}", arguments.apply_rank,
                                    counted(std::ssize(search.found.proposals), "configuration")));
    print("{}", applied(arguments.apply, *search.listed.made, arguments.apply_rank,
                        fmt::format("{}: proposal {} of {}", arguments.file.filename().string(),
                                    arguments.apply_rank, search.found.proposals.size())));
  });
}

}  // namespace

void add_search_command(Command app) {
  auto arguments = std::make_shared<SearchArguments>();
  const Command command =
      app.add_command("search", "Search the layouts of a new module for fast configurations");
  command.footer(
      "For configurations that nobody listed. Operations that change together in all "
      "configurations of an NPZ form\n"
      "a group; other modules (before layout assignment) have the groups of their default layouts. "
      "All configurations\n"
      "that differ from one in a group are scored together, the best is taken, and so on, from "
      "several starts. The\n"
      "proposals are to be measured; the result is the same on any number of ranks. --json prints "
      "what\n"
      "`tpudist rank --configs FILE` reads.\n\n"
      "Example:\n  tpudist search before.hlo.pb --default after.hlo.pb --run runs/xla-1 --propose "
      "5");
  command
      .add_option(
          "file", arguments->file,
          "HLO of a module, a tuning file (.pb) of TpuGraphs, or an NPZ with configurations")
      .required()
      .existing_file();
  command
      .add_option("--default", arguments->standard,
                  "The default: the same program after layout assignment, or the number of a "
                  "configuration in an NPZ (default: 0)")
      .offers({"N", "FILE"});
  command
      .add_option(
          "--run", arguments->runs,
          "Folders of runs, or SWEEP:N for those of a variant; all their members score together")
      .required();
  add_run_options(command, *arguments);
  add_combination_options(command, arguments->judgement);
  add_keep_all_option(command, arguments->judgement.keep_all);
  command.add_option("--propose", arguments->propose, "How many configurations to propose")
      .in_range(1, 1000)
      .show_default();
  command
      .add_option("--evaluations", arguments->search.evaluations,
                  "How many configurations to score at most")
      .in_range(1, 100'000'000)
      .show_default();
  command
      .add_option("--starts", arguments->starts,
                  "How many starts share the evaluations; each runs on one thread of a rank")
      .in_range(1, 10'000)
      .show_default();
  command.add_option("--seed", arguments->seed, "Of the random starts")
      .not_negative()
      .show_default();
  command.add_flag("--free", arguments->free, "Leave the groups: each operation changes alone");
  const Option json = command.add_flag("--json", arguments->json, "Print JSON");
  const Option apply =
      command
          .add_option("--apply", arguments->apply,
                      "Print only a proposal, to apply: jax (Python) or text (LayoutConfig)")
          .one_of({"jax", "text"})
          .excludes(json);
  command
      .add_option("--apply-rank", arguments->apply_rank,
                  "Apply the proposal of this rank instead of the first")
      .positive()
      .needs(apply);
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
