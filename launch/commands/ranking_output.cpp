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

namespace tpudist {

std::string content_of(const std::filesystem::path& option) {
  std::error_code error;
  const bool file = std::filesystem::is_regular_file(option, error);
  return option.string() + (file ? " " + to_hex(hash_file(option)) : "");
}

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

std::optional<std::int64_t> standard_row(const std::string& option,
                                         const std::filesystem::path& file, const Module& module) {
  if (module.made || option.empty()) return module.standard;
  const auto number = number_of<std::int64_t>(option);
  for (std::int64_t row = 0; number && row < module.dataset.rows(0); ++row) {
    if (module.number_of(row) == *number) return row;
  }
  throw ConfigError(
      fmt::format("--default {}: {} has no configuration of this number", option, file.string()));
}

std::int64_t taking_part(const ModuleRanking& result) {
  return std::ranges::count_if(result.members,
                               [](const auto& member) { return member.why_left_out.empty(); });
}

void warn_of_left_out(const ModuleRanking& result) {
  for (const auto& member : result.members) {
    if (!member.why_left_out.empty())
      spdlog::warn("{} member {} left out: {}", member.run.string(), member.member,
                   member.why_left_out);
  }
}

void add_members(nlohmann::ordered_json& json, const std::vector<TrainedRun>& runs,
                 const ModuleRanking& result) {
  json["runs"] = nlohmann::ordered_json::array();
  json["members"] = nlohmann::ordered_json::array();
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
}

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

std::string applied(const std::string& form, const MadeConfigs& made, std::int64_t number,
                    const std::string& title) {
  const auto text = form == "jax" ? jax_constraints : layout_config_text;
  return text(made.space, made.configs[static_cast<std::size_t>(number)], title);
}

}  // namespace tpudist
