#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/file_system.hpp"
#include "core/numbers.hpp"
#include "core/text_table.hpp"
#include "data/shards/manifest.hpp"
#include "data/shards/shard_reader.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/inspect.hpp"
#include "launch/program/command_line.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

struct InspectArguments {
  std::filesystem::path shard_root;  // or a file of HLO
  std::filesystem::path assigned;    // of a file: the program after layout assignment
  std::filesystem::path run;         // of a file: the run whose training graphs to compare with
  std::vector<std::string> collections;
  InspectFoldArguments folds;
  InspectSuspectArguments suspects;
  bool ceilings = false;
  bool json = false;
};

double ratio(const GraphSummary& graph) {
  return static_cast<double>(graph.float_bytes) /
         static_cast<double>(std::max<std::uint64_t>(graph.memory_bytes, 1));
}

std::string spread_text(const RunTimeStatistics& times) {
  if (!times.spread) return "-";
  const auto& s = *times.spread;
  return fmt::format("{:.3f} / {:.3f} / {:.3f} %", 100 * s[0], 100 * s[1], 100 * s[2]);
}

nlohmann::ordered_json to_json(const GraphStatistics& graph) {
  const GraphSummary& s = graph.entry;
  const RunTimeStatistics& t = graph.times;
  nlohmann::ordered_json json = {{"name", s.name},
                                 {"split", graph.entry.split},
                                 {"nodes", s.nodes},
                                 {"edges", s.edges},
                                 {"configs", s.configs},
                                 {"config_nodes", s.config_nodes},
                                 {"distinct_configs", t.distinct_configs},
                                 {"repeated_configs", t.repeated_configs},
                                 {"repeated_rows", t.repeated_rows},
                                 {"most_repeats", t.most_repeats},
                                 {"runtime_min", t.min},
                                 {"runtime_max", t.max},
                                 {"spread_quartiles", nullptr},
                                 {"coded", s.coded},
                                 {"config_type", s.config_type},
                                 {"states", s.states},
                                 {"max_states_per_node", s.max_states_per_node},
                                 {"float_bytes", s.float_bytes},
                                 {"memory_bytes", s.memory_bytes},
                                 {"stored_bytes", s.stored_bytes},
                                 {"ratio", ratio(s)}};
  if (t.max == 0) json["runtime_min"] = json["runtime_max"] = nullptr;
  if (t.spread) json["spread_quartiles"] = *t.spread;
  return json;
}

void print_table(const Collection& collection, const std::vector<GraphStatistics>& graphs) {
  std::string title = collection.name;
  if (!graphs.empty() && graphs.front().entry.schema != Collection{collection.name}.schema)
    title += ": " + to_text(graphs.front().entry.schema);
  TextTable table({"split", "graph", right("nodes", 6), right("edges", 6, 1),
                   right("configs", 7, 1), right("distinct", 8, 1), right("config", 6, 1),
                   right("run time (ms)", 23), right("spread of repeats", 27), "coded",
                   right("states", 6, 1), right("most", 4, 1), right("float32", 10, 1),
                   right("in memory", 10, 1), right("ratio", 6, 1)});
  for (const GraphStatistics& graph : graphs) {
    const GraphSummary& s = graph.entry;
    const std::string range =
        graph.times.max == 0
            ? "none"
            : fmt::format("{:.4f} .. {:.4f}", static_cast<double>(graph.times.min) / 1e6,
                          static_cast<double>(graph.times.max) / 1e6);
    table.rows.push_back({graph.entry.split, s.name, s.nodes, s.edges, s.configs,
                          graph.times.distinct_configs, s.config_nodes, range,
                          spread_text(graph.times), s.config_type, s.states, s.max_states_per_node,
                          format_bytes(s.float_bytes), format_bytes(s.memory_bytes),
                          TableCell(ratio(s), "{:.1f}")});
  }
  print("{}\n{}", title, table.to_text());
}

void print_totals(const std::vector<GraphStatistics>& graphs) {
  for (const std::string_view split : kSplits) {
    GraphSummary total;
    std::int64_t count = 0;
    for (const GraphStatistics& graph : graphs) {
      if (graph.entry.split != split) continue;
      ++count;
      total.configs += graph.entry.configs;
      total.distinct_configs += graph.times.distinct_configs;
      total.float_bytes += graph.entry.float_bytes;
      total.memory_bytes += graph.entry.memory_bytes;
      total.stored_bytes += graph.entry.stored_bytes;
    }
    if (count == 0) continue;
    print(
        "{:<5}  {}, {} ({} distinct); features: float32 {}, in memory {} ({:.1f} times less), on "
        "disk {}\n",
        split, counted(count, "graph"), counted(total.configs, "configuration"),
        format_count(total.distinct_configs), format_bytes(total.float_bytes),
        format_bytes(total.memory_bytes), ratio(total), format_bytes(total.stored_bytes));
  }
  print("\n");
}

// The requested collections, or all that exist.
std::vector<Collection> collections_of(const InspectArguments& arguments) {
  std::vector<Collection> collections;
  for (const std::string& name : arguments.collections) {
    collections.push_back(Collection::parse(name));
    require_shards(arguments.shard_root, collections.back(), "or convert it (tpudist convert)");
  }
  if (!collections.empty()) return collections;
  require_any_shards(arguments.shard_root);
  return converted_collections(arguments.shard_root);
}

void run(const InspectArguments& arguments) {
  if (!std::filesystem::is_directory(arguments.shard_root))
    return inspect_module(arguments.shard_root, arguments.assigned, arguments.run, arguments.json);
  const std::vector<Collection> collections = collections_of(arguments);
  if (arguments.folds.asked()) {
    std::vector<std::string> names;
    for (const Collection& collection : collections) names.push_back(collection.name);
    return inspect_folds(arguments.folds, arguments.shard_root, names, arguments.json);
  }
  if (arguments.suspects.asked)
    return inspect_suspects(arguments.suspects, arguments.shard_root, collections, arguments.json);
  if (arguments.ceilings)
    return inspect_ceilings(arguments.shard_root, collections, arguments.json);
  nlohmann::ordered_json json;
  for (const Collection& collection : collections) {
    const auto graphs = collection_statistics(arguments.shard_root, collection);
    if (arguments.json) {
      auto& list = json[collection.name] = nlohmann::ordered_json::array();
      for (const GraphStatistics& graph : graphs) list.push_back(to_json(graph));
    } else {
      print_table(collection, graphs);
      print_totals(graphs);
    }
  }
  if (arguments.json) print_json(json);
}

// A file holds modules and a folder shards, which have other options.
void check_options(const InspectArguments& arguments) {
  const bool file = !std::filesystem::is_directory(arguments.shard_root);
  if (file && (arguments.folds.asked() || arguments.suspects.asked || arguments.ceilings ||
               !arguments.collections.empty()))
    refuse_value("shards", "A file holds modules: leave out the options for shards");
  if (!file && !arguments.assigned.empty()) refuse_value("--default", "Needs a file, not shards");
  if (!file && !arguments.run.empty()) refuse_value("--run", "Needs a file, not shards");
}

}  // namespace

void add_inspect_command(Command app) {
  auto arguments = std::make_shared<InspectArguments>();
  const Command command = app.add_command("inspect", "Show what shards or a module hold");
  command.footer(
      "One line for each graph: sizes, distinct configurations, run times, quartiles of max / min "
      "- 1 over\n"
      "repeated measurements (the noise), and how small the configurations are stored.\n\n"
      "With --folds or --fold-file the folds of the training graphs, and the model families in "
      "them.\n\n"
      "With --suspects the graphs whose run times look corrupted, by their order and their "
      "repetitions alone,\n"
      "and the overrides that leave them out; nothing is left out by itself.\n\n"
      "With --ceiling the Kendall tau that a perfect ranking of each graph would score, because "
      "its measurements\n"
      "are noisy, from those that were repeated.\n\n"
      "A file of HLO in place of the shards: its modules, the operations whose "
      "layouts can be\n"
      "configured, their states, and the groups that change together. With --run also how far it "
      "lies from\n"
      "what a run was trained on.\n\n"
      "Example:\n  tpudist inspect tpudist-data --collection layout:xla:random\n"
      "  tpudist inspect tpudist-data --suspects\n"
      "  tpudist inspect tpudist-data --collection layout:xla:random --folds 5 --write-folds "
      "folds.yaml");
  command
      .add_option("shards", arguments->shard_root, "Folder of the shards, or a file of HLO (.pb)")
      .required()
      .existing_path();
  command
      .add_option("--collection,--collections", arguments->collections,
                  "E.g. layout:xla:random (default: all that are there)")
      .split_at(',');
  command.add_flag("--json", arguments->json, "Print JSON");
  command
      .add_option("--default", arguments->assigned,
                  "Of a file: the same program after layout assignment, for the default layouts")
      .existing_file();
  command
      .add_option("--run", arguments->run,
                  "Of a file: what of it lies outside of the graphs that this run was trained on")
      .existing_folder();
  add_fold_options(command, arguments->folds);
  const Option suspects = add_suspect_options(command, arguments->suspects);
  command
      .add_flag("--ceiling", arguments->ceilings,
                "Show the Kendall tau that a perfect ranking of each graph would score")
      .excludes(suspects);
  command.run([arguments] {
    if (!arguments->folds.output.empty() && !arguments->folds.asked())
      refuse_value("--write-folds", "Needs --folds or --fold-file");
    check_options(*arguments);
    run(*arguments);
  });
}

}  // namespace tpudist
