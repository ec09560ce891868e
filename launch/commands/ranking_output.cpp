#include "launch/commands/ranking_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "data/hlo/layout_configs.hpp"
#include "data/loading/seen_graphs.hpp"
#include "data/npz/zip_archive.hpp"
#include "launch/sweep/sweep_folder.hpp"

namespace tpudist {
namespace {

// 0.02 for "2%".
double share_of(const std::string& option, const std::string& text, bool may_be_0) {
  const std::string_view plain = trim(text);
  const auto percent = plain.ends_with('%')
                           ? number_of<double>(trim(plain.substr(0, plain.size() - 1)))
                           : std::nullopt;
  if (!percent || !(*percent >= 0) || !(*percent < 100) || (*percent == 0 && !may_be_0))
    refuse_value(option, fmt::format("{} is no percentage below 100, such as {}", text,
                                     may_be_0 ? "2%" : "90%"));
  return *percent / 100;
}

// Warns once if the module lies outside of a run's training graphs.
void warn_of_distance(const std::filesystem::path& path, const Module& module,
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
        spdlog::warn("{} lies outside of what {} was trained on: {}", path.string(),
                     run.path.string(), unseen);
    } catch (const Error& error) {
      spdlog::warn("{}", error.what());
    }
  }
}

// The row of the default configuration: that of --default if it is a number.
std::optional<std::int64_t> standard_row(const RankingArguments& arguments, const Module& module) {
  if (module.made || arguments.standard.empty()) return module.standard;
  const auto number = number_of<std::int64_t>(arguments.standard);
  for (std::int64_t row = 0; number && row < module.dataset.rows(0); ++row) {
    if (module.number_of(row) == *number) return row;
  }
  throw ConfigError(fmt::format("--default {}: {} has no configuration of this number",
                                arguments.standard, arguments.file.string()));
}

}  // namespace

bool names_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::string content_of(const std::filesystem::path& option) {
  return option.string() + (names_file(option) ? " " + to_hex(hash_file(option)) : "");
}

Option add_ranking_options(Command command, RankingArguments& arguments) {
  command
      .add_option(
          "--run", arguments.runs,
          "Folders of runs, or SWEEP:N for those of a variant; all their members rank together")
      .required();
  add_run_options(command, arguments);
  add_judgement_options(command, arguments.judgement);
  command
      .add_option("--within", arguments.within,
                  "How close to the best configuration of a list the best of its first few has to "
                  "come")
      .show_default();
  command
      .add_option("--confidence", arguments.confidence,
                  "With which confidence, on a new model family")
      .show_default();
  command
      .add_option("--measured", arguments.measured,
                  "Times of configurations, which correct the order: the output of --json with a "
                  "time in its entries, a tuning file (.pb) or an NPZ")
      .existing_file();
  const Option json = command.add_flag("--json", arguments.json, "Print JSON");
  const Option apply =
      command
          .add_option("--apply", arguments.apply,
                      "Print only the first configuration, to apply: jax (Python) or text "
                      "(LayoutConfig)")
          .one_of({"jax", "text"})
          .excludes(json);
  command
      .add_option("--apply-rank", arguments.apply_rank,
                  "Apply the configuration of this rank instead of the first")
      .positive()
      .needs(apply);
  return apply;
}

void run_on_module(const RankingArguments& arguments, std::vector<AgreedValue> agreed,
                   const std::string& name, const ConfigRequest& request, const RankModule& rank) {
  arguments.judgement.options();
  share_of("--within", arguments.within, true);
  share_of("--confidence", arguments.confidence, false);
  require_searchable(arguments.file);  // before hashing, which would read all of the file
  std::vector<TrainedRun> runs;
  for (const auto& path : run_folders(arguments.runs)) runs.push_back(arguments.open(path));
  std::vector<const TrainedRun*> all;
  for (const TrainedRun& run : runs) all.push_back(&run);
  const GraphReduction reduction = scored_reduction(all);
  agreed.insert(agreed.end(), {{"the file", arguments.file.string()},
                               {"the content of the file", to_hex(hash_file(arguments.file))},
                               {"--default", content_of(arguments.standard)},
                               {"--measured", content_of(arguments.measured)},
                               {"how members are combined", arguments.judgement.to_text()}});
  run_job(arguments.job_options(std::move(agreed), runs), [&](JobContext& context) {
    Module module = read_module(arguments.file, runs.front().experiment.data.collection, reduction,
                                name, request);
    module.standard = standard_row(arguments, module);
    if (context.world.rank() == 0) warn_of_distance(arguments.file, module, runs);
    rank(module, runs, context);
  });
}

std::int64_t taking_part(const RankingMembers& members) {
  return std::ranges::count_if(members,
                               [](const auto& member) { return member.why_left_out.empty(); });
}

void warn_of_left_out(const RankingMembers& members) {
  for (const auto& member : members) {
    if (!member.why_left_out.empty())
      spdlog::warn("{} member {} left out: {}", member.run.string(), member.member,
                   member.why_left_out);
  }
}

MeasurementAdvice advice_of(const RankingArguments& arguments, const std::vector<TrainedRun>& runs,
                            const RankingMembers& members) {
  return advise_measurements(ranking_runs(runs, members), arguments.judgement.options().combination,
                             share_of("--within", arguments.within, true),
                             share_of("--confidence", arguments.confidence, false));
}

std::string known_text(const KnownGain& known, std::int64_t members) {
  if (members < 2) return "one member does not show how far members disagree\n";
  return known.is_better() ? "" : "no better than the default, as far as this ensemble knows\n";
}

std::string measured_text(const MeasuredCorrection& correction, const MeasuredFile& file,
                          std::int64_t configs) {
  std::string text = "measured " + format_count(static_cast<std::int64_t>(correction.measured));
  text += configs > 0                ? " of " + counted(configs, "configuration")
          : correction.measured == 1 ? " configuration"
                                     : " configurations";
  if (file.not_listed > 0)
    text += fmt::format("; left out: {} that the {} lacks", counted(file.not_listed, "measurement"),
                        configs > 0 ? "list" : "space");
  if (file.without_time > 0)
    text += fmt::format("; left out: {} without a time above 0",
                        counted(file.without_time, "measurement"));
  if (!correction.why_not.empty())
    return text + fmt::format("; the order stays: {}\n", correction.why_not);
  const auto tau = [](double value) {
    return std::isnan(value) ? std::string("undefined") : fmt::format("{:.4f}", value);
  };
  return text + fmt::format(
                    "; the model ranks them with Kendall tau {}, corrected {} (each "
                    "predicted from the others){}\n",
                    tau(correction.tau_before), tau(correction.tau_after),
                    std::isinf(correction.ridge)
                        ? "; unmeasured configurations keep the model's order"
                        : "");
}

nlohmann::ordered_json measured_json(const MeasuredCorrection& correction,
                                     const MeasuredFile& file) {
  nlohmann::ordered_json json = {{"configs", correction.measured},
                                 {"not_listed", file.not_listed},
                                 {"without_time", file.without_time},
                                 {"kendall_tau", finite_or_null(correction.tau_before)},
                                 {"kendall_tau_corrected", finite_or_null(correction.tau_after)},
                                 {"ridge", finite_or_null(correction.ridge)}};
  if (!correction.why_not.empty()) json["order_stays"] = correction.why_not;
  return json;
}

nlohmann::ordered_json ranking_json(const RankingArguments& arguments, const Module& module,
                                    const std::vector<TrainedRun>& runs,
                                    const RankingMembers& members) {
  const Graph& graph = module.dataset.graph(0);
  nlohmann::ordered_json json = {
      {"file", arguments.file.string()},
      {"graph", graph.name},
      {"kind", module.dataset.options().collection.is_tile() ? "tile" : "layout"},
      {"nodes", graph.nodes},
      {"combine", arguments.judgement.rule},
      {"runs", nlohmann::ordered_json::array()},
      {"members", nlohmann::ordered_json::array()}};
  for (const TrainedRun& run : runs)
    json["runs"].push_back(
        {{"run", run.path.string()}, {"step", run.step}, {"averaged", run.averaged}});
  for (const auto& member : members) {
    nlohmann::ordered_json entry = {{"run", member.run.string()},
                                    {"member", member.member},
                                    {"used", member.why_left_out.empty()}};
    if (!member.why_left_out.empty()) entry["why_left_out"] = member.why_left_out;
    json["members"].push_back(std::move(entry));
  }
  return json;
}

nlohmann::ordered_json layouts_json(const MadeConfigs& made, std::int64_t number) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const LayoutConfig& config = made.configs[number];
  for (std::size_t i = 0; i < config.size(); ++i) {
    const ConfigurableNode& node = made.space.nodes[i];
    auto& layouts = json[node.name] = nlohmann::ordered_json::array();
    const auto known = static_cast<int>(node.tensors.size());  // 0: of arrays alone
    for (int tensor = 0; tensor < (known > 0 ? std::min(known, kTensors) : kTensors); ++tensor)
      layouts.push_back(tensor_layout(node.states[config[i]], tensor));
  }
  return json;
}

std::string RankingArguments::applied(const MadeConfigs& made, std::int64_t number,
                                      const std::string& which) const {
  const auto text = apply == "jax" ? jax_constraints : layout_config_text;
  return text(made.space, made.configs[static_cast<std::size_t>(number)],
              file.filename().string() + ": " + which);
}

}  // namespace tpudist
