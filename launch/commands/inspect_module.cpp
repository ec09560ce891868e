#include "launch/commands/inspect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/hlo/layout_space.hpp"
#include "data/hlo/tuned_npz.hpp"
#include "data/hlo/tuning_file.hpp"
#include "data/loading/seen_graphs.hpp"
#include "launch/program/output.hpp"
#include "results/records/run_folder.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kDumpFlags =
    "dump it before layout assignment: XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_proto "
    "--xla_dump_hlo_pass_re=.*layout-assignment.*\", and take the file before_layout-assignment";

struct ModuleReport {
  std::string name;
  std::int64_t nodes = 0, computations = 0, edges = 0, runs = 0;
  std::map<std::string, std::int64_t> opcodes;  // number of nodes
  bool tiles = false;
  LayoutSpace space;
  SeenGraphs own;  // of this module alone
  std::vector<std::string> warnings;
};

// The training graphs of a run.
struct Training {
  std::filesystem::path run;
  SeenGraphs seen;
};

std::optional<Training> training_of(const std::filesystem::path& run) {
  if (run.empty()) return std::nullopt;
  const std::filesystem::path file = RunFolder::open(run).path() / kSeenGraphsFile;
  if (!std::filesystem::exists(file))
    throw ConfigError(fmt::format(
        "{}: has no {}, which older versions did not write; `tpudist train --resume` writes it",
        run.string(), file.filename().string()));
  return Training{run, read_seen_graphs(file)};
}

void warn_of_stage(ModuleReport& report) {
  std::vector<std::string> late;
  for (const char* opcode : {"fusion", "bitcast", "copy"})
    if (report.opcodes.contains(opcode))
      late.push_back(fmt::format("{} {}", report.opcodes.at(opcode), opcode));
  if (!late.empty()) {
    report.warnings.push_back(
        fmt::format("the module has {}: it was dumped too late to choose layouts; {}",
                    fmt::join(late, ", "), kDumpFlags));
  } else if (report.space.nodes.empty()) {
    report.warnings.push_back(
        fmt::format("no convolution, dot or reshape: no layout can be configured; {}", kDumpFlags));
  }
}

ModuleReport report_of(const HloFile& file, int index, const std::filesystem::path& assigned) {
  const TunedModule tuned = file.module(index);
  const std::string where = file.where(index);
  const HloGraph graph = featurise(tuned.module, where);
  ModuleReport report;
  report.name = file.name(index);
  report.nodes = graph.nodes();
  report.computations = static_cast<std::int64_t>(tuned.module.computations.size());
  report.edges = static_cast<std::int64_t>(graph.edges.size() / 2);
  report.runs = static_cast<std::int64_t>(tuned.runs.size());
  report.tiles = tuned.tiles;
  for (const HloComputation& computation : tuned.module.computations)
    for (const HloInstruction& own : computation.instructions) ++report.opcodes[own.opcode];
  report.warnings = unknown_parts(graph);
  if (!tuned.tiles) {
    report.space = known_space(tuned, assigned, where, report.warnings);
    warn_of_stage(report);
  }
  report.own.add(graph.nodes(), std::ssize(report.space.nodes), graph.opcodes, graph.node_features);
  return report;
}

// The number of nodes by opcode, for opcodes that the training graphs lack.
std::map<std::string, std::int64_t> unseen_opcodes(const ModuleReport& report,
                                                   const UnseenParts& unseen) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [name, count] : report.opcodes)
    if (std::ranges::find(unseen.opcodes, int{opcode_number(name)}) != unseen.opcodes.end())
      counts[name] = count;
  return counts;
}

nlohmann::ordered_json to_json(const ModuleReport& report, const Training& training) {
  const UnseenParts unseen = unseen_parts(report.own, training.seen);
  const std::vector<std::string> names = node_feature_names();
  const auto pair = [](const auto& range) {
    return nlohmann::ordered_json::array({range.least, range.most});
  };
  nlohmann::ordered_json json = {{"run", training.run.string()},
                                 {"graphs", training.seen.graphs},
                                 {"reduce", training.seen.reduction},
                                 {"nodes", pair(training.seen.nodes)},
                                 {"config_nodes", pair(training.seen.config_nodes)},
                                 {"nodes_outside", unseen.nodes},
                                 {"config_nodes_outside", unseen.config_nodes},
                                 {"opcodes", unseen_opcodes(report, unseen)},
                                 {"features", nlohmann::ordered_json::array()}};
  for (const std::size_t column : unseen.features)
    json["features"].push_back({{"column", column},
                                {"name", names[column]},
                                {"range", pair(report.own.features[column])},
                                {"seen", pair(training.seen.features[column])}});
  return json;
}

void print_distance(const ModuleReport& report, const Training& training) {
  const SeenGraphs &seen = training.seen, &own = report.own;
  const UnseenParts unseen = unseen_parts(own, seen);
  print("\n{} was trained on {} of {} to {} nodes, {} to {} of them configurable\n", training.run,
        counted(seen.graphs, "graph"), format_count(seen.nodes.least),
        format_count(seen.nodes.most), format_count(seen.config_nodes.least),
        format_count(seen.config_nodes.most));
  if (seen.reduction != "none")
    print("  they were reduced ({}), which the module here is not\n", seen.reduction);
  if (!unseen.any()) {
    print("  the module lies within: no opcode, feature or size that was not seen\n");
    return;
  }
  if (unseen.nodes) print("  outside of that: {}\n", counted(own.nodes.most, "node"));
  if (unseen.config_nodes)
    print("  outside of that: {}\n", counted(own.config_nodes.most, "configurable node"));
  for (const auto& [name, count] : unseen_opcodes(report, unseen))
    print("  opcode {} of {} was never seen\n", name, counted(count, "node"));
  if (unseen.features.empty()) return;
  const std::vector<std::string> names = node_feature_names();
  print("  {} of {} node features leave their range:\n  {:>6}  {:<40} {:>26}  {:>26}\n",
        unseen.features.size(), seen.features.size(), "column", "feature", "here", "in training");
  const auto text = [](const Range<float>& range) {
    return fmt::format("{:.6g} .. {:.6g}", range.least, range.most);
  };
  for (const std::size_t column : unseen.features)
    print("  {:>6}  {:<40} {:>26}  {:>26}\n", column, names[column], text(own.features[column]),
          text(seen.features[column]));
}

nlohmann::ordered_json to_json(const ModuleReport& report) {
  nlohmann::ordered_json json = {
      {"name", report.name},        {"nodes", report.nodes},
      {"edges", report.edges},      {"computations", report.computations},
      {"runs", report.runs},        {"opcodes", report.opcodes},
      {"warnings", report.warnings}};
  if (report.tiles) return json;
  json["configurations"] = report.space.size();
  auto& groups = json["groups"] = nlohmann::ordered_json::array();
  for (const auto& group : report.space.groups) {
    const ConfigurableNode& first = report.space.nodes[group.front()];
    nlohmann::ordered_json names = nlohmann::ordered_json::array(), states = names;
    for (const std::size_t node : group) names.push_back(report.space.nodes[node].name);
    for (const LayoutState& state : first.states)
      states.push_back(layout_text(first.opcode, state));
    groups.push_back({{"opcode", first.opcode},
                      {"default", layout_text(first.opcode, first.states[first.standard])},
                      {"operations", names},
                      {"states", states}});
  }
  return json;
}

// Exact below 2^53, where doubles hold every integer.
std::string size_text(double size) {
  return size < 9e15 ? format_count(static_cast<std::int64_t>(size)) : fmt::format("{:.3g}", size);
}

void print_report(const ModuleReport& report) {
  print("{}: {} in {}, {}", report.name, counted(report.nodes, "node"),
        counted(report.computations, "computation"), counted(report.edges, "edge"));
  if (report.runs > 0) print(", {}", counted(report.runs, "measured configuration"));
  print("\n");
  if (report.tiles || report.space.nodes.empty()) return;
  const auto count = [&](std::string_view opcode) {
    return std::ranges::count(report.space.nodes, opcode, &ConfigurableNode::opcode);
  };
  print("{} ({} convolution, {} dot, {} reshape) in {}: {} configurations\n\n",
        counted(std::ssize(report.space.nodes), "configurable operation"), count("convolution"),
        count("dot"), count("reshape"), counted(std::ssize(report.space.groups), "group"),
        size_text(report.space.size()));
  print("{:>10}  {:>6}  {:<11}  {:<42}  {}\n", "operations", "states", "opcode", "default",
        "first operation");
  for (const auto& group : report.space.groups) {
    const ConfigurableNode& first = report.space.nodes[group.front()];
    print("{:>10}  {:>6}  {:<11}  {:<42}  {}\n", group.size(), first.states.size(), first.opcode,
          layout_text(first.opcode, first.states[first.standard]), first.name);
  }
}

}  // namespace

void inspect_module(const std::filesystem::path& path, const std::filesystem::path& assigned,
                    const std::filesystem::path& run, bool json) {
  const std::optional<Training> training = training_of(run);
  const HloFile file(path);
  if (!assigned.empty() && file.kind() == HloFile::Kind::tuned_modules)
    throw ConfigError("--default: the modules of this file are configured by tile sizes");
  nlohmann::ordered_json modules = nlohmann::ordered_json::array();
  if (!json) print("{}: {}\n", path, kind_name(file.kind()));
  for (int i = 0; i < file.size(); ++i) {
    const ModuleReport report = report_of(file, i, assigned);
    for (const std::string& warning : report.warnings) spdlog::warn("{}: {}", report.name, warning);
    if (json) {
      modules.push_back(to_json(report));
      if (training) modules.back()["training"] = to_json(report, *training);
    } else {
      print_report(report);
      if (training) print_distance(report, *training);
    }
  }
  if (file.dropped_modules() > 0)
    spdlog::warn("{}: left out, as the data set does: {}", path.string(),
                 counted(file.dropped_modules(), "module"));
  if (json)
    print_json(nlohmann::ordered_json{
        {"file", path.string()}, {"kind", kind_name(file.kind())}, {"modules", modules}});
}

}  // namespace tpudist
