#include <fmt/format.h>

#include <cmath>
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
  // Over the default: a share of its time, or a difference of estimates.
  std::string gain_text(const PointScore& own) const {
    const double gain = search.found.standard.estimate - own.estimate;
    return has_times() ? fmt::format("{:.2f} %", -100 * std::expm1(-gain))
                       : fmt::format("{:.4f}", gain);
  }
};

std::string pessimism_text(const ModuleSearch& search) {
  return fmt::format("pessimism {} ({})", search.pessimism.share,
                     search.pessimism.graphs > 0
                         ? fmt::format("chosen on {} that members had not seen",
                                       counted(search.pessimism.graphs, "measured graph"))
                         : "too few families of unseen graphs to choose it");
}

// A promise is learned from graphs whose lists of configurations were measured. It holds for lists. A
// search finds the best of a space by the model's errors too, and no graph has a measured space.
std::string promise_text(const SearchFindings& findings) {
  const std::string& collection = findings.advice.collection;
  return fmt::format(
      "no promise for the proposals: promises are learned from measured lists{}, and no whole "
      "space was ever measured\nfor the list of `{}`: {}",
      collection.empty() ? "" : " (" + collection + ")", findings.listing,
      findings.advice.text(findings.listed));
}

void print_found(const SearchArguments& arguments, const std::vector<TrainedRun>& runs,
                 const SearchFindings& findings) {
  const ModuleSearch& search = findings.search;
  const Graph& graph = search.listed.dataset.graph(0);
  const SearchResult& found = search.found;
  print("{}: {}, {} of operations that change together{}, {:.4g} configurations\n",
        printable(graph.name), counted(graph.nodes, "node"),
        counted(std::ssize(search.listed.made->space.groups), "group"),
        arguments.free ? " (left by --free)" : "", search.configs);
  print("searched by {} of {}:", taking_part(search.members),
        counted(std::ssize(search.members), "member"));
  for (const TrainedRun& run : runs) print(" {} {}", run.path, opened_at(run));
  print("\n{} from {}; {}\n", counted(found.evaluations, "evaluation"),
        counted(arguments.search.starts, "start"), pessimism_text(search));
  print("\n{:>6} {:>9} {:>9} {:>7} {:>7}{}\n", "rank", findings.has_times() ? "time" : "estimate",
        "gain", "faster", "groups", arguments.free ? fmt::format(" {:>7}", "broken") : "");
  const auto row = [&](const std::string& rank, const PointScore& own, std::size_t number) {
    print("{:>6} {:>9} {:>9} {:>5.0f} % {:>7}{}\n", rank,
          findings.has_times() ? fmt::format("{:.6g}", std::exp(own.estimate))
                               : fmt::format("{:.4f}", own.estimate),
          findings.gain_text(own), 100 * own.agree, number == 0 ? 0 : search.changed[number - 1],
          !arguments.free
              ? ""
              : fmt::format(" {:>5.1f} %", number == 0 ? 0 : 100 * search.broken[number - 1]));
  };
  for (std::size_t k = 0; k < found.scores.size(); ++k)
    row(std::to_string(k + 1), found.scores[k], k + 1);
  row("-", found.standard, 0);
  print("the last row is the default; proposals differ from each other in {} or more\n",
        counted(found.apart, arguments.free ? "operation" : "group"));
  if (arguments.free)
    print(
        "broken: operations laid out unlike most of their group. Training may have no such "
        "programs: trust these scores less.\n");
  if (found.scores.empty() || found.scores.front().estimate >= found.standard.estimate)
    print("ranked first is the default\n");
  else
    print(
        "predicted gain of the best over the default: {}{}; {:.0f} % of members call it faster\n{}",
        findings.gain_text(found.scores.front()),
        findings.has_times() ? " of its time" : " standard deviations of random configurations",
        100 * found.scores.front().agree,
        findings.measured ? "" : known_text(search.known, taking_part(search.members)));
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
  nlohmann::ordered_json json = ranking_json(arguments, search.listed, runs, search.members);
  json["configs"] = search.configs;
  json["evaluations"] = found.evaluations;
  json["starts"] = arguments.search.starts;
  json["pessimism"] = search.pessimism.share;
  json["pessimism_chosen_on"] = search.pessimism.graphs;
  json["apart"] = found.apart;
  if (findings.measured) {
    json["measured"] = measured_json(search.correction, *findings.measured);
  } else {
    json["best_is_better"] = search.known.is_better();
    json["advice_for_list"] = findings.advice.json();
    json["advice_for_list"]["list"] = findings.listing;
  }
  json["ranking"] = nlohmann::ordered_json::array();
  for (std::size_t k = 0; k <= found.scores.size(); ++k) {
    const PointScore& own = k == 0 ? found.standard : found.scores[k - 1];
    nlohmann::ordered_json entry = {
        {"rank", k},
        {"estimate", finite_or_null(own.estimate)},
        {"gain", finite_or_null(found.standard.estimate - own.estimate)},
        {"faster", own.agree},
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
    throw ConfigError(fmt::format("--evaluations {}: give at least {}, one for each start",
                                  arguments.search.evaluations, arguments.starts));
  if (arguments.apply_rank > arguments.propose)
    throw ConfigError(fmt::format("--apply-rank {}: the search proposes {}", arguments.apply_rank,
                                  counted(arguments.propose, "configuration")));
  require_searchable(arguments.file);  // before holds_npz
  const bool npz = holds_npz(arguments.file);
  ConfigRequest request;
  if (!npz) request = {.configs = "default", .assigned = arguments.standard};
  if (!arguments.standard.empty() && !(npz ? number_of<std::int64_t>(arguments.standard).has_value()
                                           : names_file(arguments.standard)))
    refuse_value("--default", arguments.standard +
                                  " is neither the program after layout assignment nor the number "
                                  "of a configuration in the file");
  if (npz && arguments.apply == "jax")
    throw ConfigError("--apply jax: an NPZ names no operations; --apply text numbers them");
  const SearchOptions& options = arguments.search;
  std::vector<AgreedValue> agreed = {
      {"the command", "search"},
      {"the options of the search",
       fmt::format("{} {} {} {} {}", options.evaluations, options.starts, options.propose,
                   options.seed, arguments.free)}};
  const auto search = [&](const Module& module, const std::vector<TrainedRun>& runs,
                          JobContext& context) {
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
    warn_of_left_out(found.members);
    if (!arguments.apply.empty()) {
      const std::int64_t proposals = std::ssize(found.found.proposals), rank = arguments.apply_rank;
      if (rank > proposals)
        throw ConfigError(fmt::format("--apply-rank {}: the search proposes {}", rank,
                                      counted(proposals, "configuration")));
      return print("{}", arguments.applied(*found.listed.made, rank,
                                           fmt::format("proposal {} of {}", rank, proposals)));
    }
    findings.measured = std::move(file);
    findings.advice = advice_of(arguments, runs, found.members);
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
      "proposals are to be measured; the result is the same on any number of ranks. For a module "
      "of "
      "HLO, --json\n"
      "prints what `tpudist rank --configs FILE` reads.\n\n"
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
      .in_range(1, 1'000'000)
      .show_default();
  command
      .add_option("--starts", arguments->starts,
                  "How many starts share the evaluations; each runs on one thread of a rank")
      .in_range(1, 256)
      .show_default();
  command.add_option("--seed", arguments->seed, "Of the random starts")
      .not_negative()
      .show_default();
  command.add_flag("--free", arguments->free, "Change each operation alone, without groups");
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
