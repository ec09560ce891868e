#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "data/npz/zip_archive.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/ranking_output.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kListed = 512;  // of the random list that a promise is told of

struct SearchArguments : RankingArguments {
  SearchOptions search;
  std::int64_t propose = 10, starts = 8, seed = 1;
  bool free = false;
};

// A search and what is told beside it.
struct SearchFindings {
  ModuleSearch search;
  std::optional<MeasuredFile> measured = {};
  MeasurementAdvice advice = {};
  std::string listing = {};  // the command that ranks a list of this program
  std::int64_t listed = 0;   // configurations of that list

  // Whether estimates are logarithms of times.
  bool has_times() const { return measured && search.correction.why_not.empty(); }
};

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

// A promise is learned from graphs whose lists of configurations were measured. It holds for lists. A
// search finds the best of a space by the model's errors too, and no graph has a measured space.
std::string promise_text(const SearchFindings& findings) {
  const std::string& collection = findings.advice.collection;
  return fmt::format(
      "no promise for the proposals: promises are learned from measured lists{}, and no whole "
      "space "
      "was ever measured\nfor the list of `{}`: {}",
      collection.empty() ? "" : " (" + collection + ")", findings.listing,
      findings.advice.text(findings.listed));
}

void print_found(const SearchArguments& arguments, const std::vector<TrainedRun>& runs,
                 const SearchFindings& findings) {
  const ModuleSearch& search = findings.search;
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
  print("\n{:>6} {:>9} {:>14} {:>9} {:>9} {:>7} {:>7}{}\n", "rank",
        findings.has_times() ? "time" : "estimate", "score", "deviation", "gain", "faster",
        "groups", arguments.free ? fmt::format(" {:>7}", "broken") : "");
  const std::vector<Listed> all = listed(ranking);
  const auto row = [&](const std::string& rank, double estimate, std::size_t number) {
    const auto& [config, gain] = all[number];
    print("{:>6} {:>9} {:>14.7g} {:>9} {:>9.4f} {:>7} {:>7}{}\n", rank,
          findings.has_times() ? fmt::format("{:.6g}", std::exp(estimate))
                               : fmt::format("{:.4f}", estimate),
          config->score,
          std::isnan(config->spread.deviation) ? "-"
                                               : fmt::format("{:.4f}", config->spread.deviation),
          gain.mean, fmt::format("{}/{}", gain.faster, config->spread.z_scores.size()),
          number == 0 ? 0 : search.changed[number - 1],
          !arguments.free
              ? ""
              : fmt::format(" {:>5.1f} %", number == 0 ? 0 : 100 * search.broken[number - 1]));
  };
  for (std::size_t k = 1; k < all.size(); ++k) row(std::to_string(k), found.scores[k - 1].score, k);
  row("-", found.standard.score, 0);
  print("the last row is the default; proposals differ from each other in {} or more\n",
        counted(found.apart, arguments.free ? "operation" : "group"));
  if (arguments.free)
    print(
        "broken: operations whose layouts are not those of their group; no program in training had "
        "any, so trust these scores less\n");
  const bool first = found.proposals.empty() || found.scores.front().score >= found.standard.score;
  print("{}", gain_text("the default", first, all[first ? 0 : 1].gain,
                        ranking.ranking.front().spread.z_scores.size(),
                        findings.measured ? nullptr : &search.known));
  if (findings.measured)
    print("{}", measured_text(search.correction, *findings.measured, 0));
  else
    print("{}", promise_text(findings));
}

nlohmann::ordered_json to_json(const SearchArguments& arguments,
                               const std::vector<TrainedRun>& runs,
                               const SearchFindings& findings) {
  const ModuleSearch& search = findings.search;
  const SearchResult& found = search.found;
  nlohmann::ordered_json json = ranking_json(arguments, search.listed, runs, search.ranking);
  json["configs"] = search.configs;
  json["evaluations"] = found.evaluations;
  json["distinct_configs"] = found.distinct;
  json["starts"] = arguments.search.starts;
  json["pessimism"] = search.pessimism.share;
  json["pessimism_chosen_on"] = search.pessimism.graphs;
  json["apart"] = found.apart;
  if (findings.measured) {
    json["measured"] = measured_json(search.correction, *findings.measured);
  } else {
    json["best_is_better"] = search.known.is_better();
    json["measure_of_list"] = findings.advice.json();
    json["measure_of_list"]["list"] = findings.listing;
  }
  json["ranking"] = nlohmann::ordered_json::array();
  const std::vector<Listed> all = listed(search.ranking);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto& [config, gain] = all[k];
    const PointScore& estimate = k == 0 ? found.standard : found.scores[k - 1];
    nlohmann::ordered_json entry = {{"rank", k},
                                    {"estimate", estimate.score},
                                    {"score", config->score},
                                    {"deviation", finite_or_null(config->spread.deviation)},
                                    {"gain", gain_json(gain)},
                                    {"changed_groups", k == 0 ? 0 : search.changed[k - 1]}};
    if (arguments.free) entry["broken"] = k == 0 ? 0 : search.broken[k - 1];
    if (k == 0) entry["default"] = true;
    entry["layouts"] = layouts_json(*search.listed.made, static_cast<std::int64_t>(k));
    json["ranking"].push_back(std::move(entry));
  }
  return json;
}

void run(SearchArguments arguments) {
  arguments.search.propose = static_cast<int>(arguments.propose);
  arguments.search.starts = static_cast<int>(arguments.starts);
  arguments.search.seed = static_cast<std::uint64_t>(arguments.seed);
  if (arguments.search.evaluations < arguments.starts)
    throw ConfigError(fmt::format("--evaluations {}: are fewer than one for each of --starts {}",
                                  arguments.search.evaluations, arguments.starts));
  require_searchable(arguments.file);  // before holds_npz
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
  const SearchOptions& options = arguments.search;
  std::vector<AgreedValue> agreed = {
      {"the command", "search"},
      {"the options of the search",
       fmt::format("{} {} {} {} {}", options.evaluations, options.starts, options.propose,
                   options.seed, arguments.free)}};
  const auto search = [&](Module& module, const std::vector<TrainedRun>& runs,
                          JobContext& context) {
    module.standard = standard_row(arguments.standard, arguments.file, module);
    std::optional<MeasuredFile> file;
    std::function<MeasuredPoints(const SearchedModule&)> measured;
    if (!arguments.measured.empty()) {
      measured = [&](const SearchedModule& searched) {
        MeasuredPoints known;
        file = read_measured(arguments.measured, module, searched, known.points);
        known.measurements = file->measurements;
        return known;
      };
    }
    SearchFindings findings{search_module(module, runs, arguments.judgement.options(), options,
                                          arguments.free, context, measured)};
    if (context.world.rank() != 0) return;
    const ModuleSearch& found = findings.search;
    warn_of_left_out(found.ranking);
    if (!arguments.apply.empty()) {
      const std::int64_t proposals = std::ssize(found.found.proposals), rank = arguments.apply_rank;
      if (rank > proposals)
        throw ConfigError(fmt::format("--apply-rank {}: the search proposes {}", rank,
                                      counted(proposals, "configuration")));
      return print("{}", arguments.applied(*found.listed.made, rank,
                                           fmt::format("proposal {} of {}", rank, proposals)));
    }
    findings.measured = std::move(file);
    findings.advice = advice_of(arguments, runs, found.ranking);
    findings.listed = module.made ? kListed : module.dataset.rows(0);
    findings.listing = "tpudist rank " + printable(arguments.file.string()) +
                       (module.made ? fmt::format(" --configs random:{}", kListed) : std::string());
    if (arguments.json) return print_json(to_json(arguments, runs, findings));
    print_found(arguments, runs, findings);
  };
  run_on_module(arguments, std::move(agreed), {}, request, search);
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
  add_ranking_options(command, *arguments);
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
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
