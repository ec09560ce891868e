#include "launch/commands/inspect.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/numbers.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "core/text_table.hpp"
#include "launch/program/output.hpp"
#include "results/inspect/graph_ceilings.hpp"
#include "results/inspect/suspect_graphs.hpp"

namespace tpudist {
namespace {

void print_collection(const Collection& collection, const std::vector<GraphCeiling>& graphs) {
  TextTable table({"split", "graph", right("configs", 8), right("distinct", 8, 1),
                   right("repeated", 8, 1), right("noise", 8), "ceiling (95 % interval)"});
  for (const GraphCeiling& graph : graphs) {
    const NoiseCeiling& ceiling = graph.ceiling;
    const bool known = ceiling.value.has_value();
    table.rows.push_back({graph.split, graph.name, graph.measurements, graph.distinct_configs,
                          known ? TableCell(ceiling.repeated_configs) : "-",
                          known ? TableCell(100 * ceiling.noise, "{:.4f} %") : "-",
                          to_text(ceiling)});
  }
  print("{}\n{}", collection.name, table.to_text());
  for (const std::string_view split : kSplits) {
    const MeanCeiling mean = mean_ceiling(graphs, split);
    if (!mean.value) continue;
    print("{:<5}  mean ceiling {:.4f} of {} of {}\n", split, *mean.value, format_count(mean.graphs),
          counted(mean.of, "graph"));
  }
  print("\n");
}

nlohmann::ordered_json to_json(const GraphCeiling& graph) {
  const NoiseCeiling& ceiling = graph.ceiling;
  nlohmann::ordered_json json = {{"name", graph.name},
                                 {"split", graph.split},
                                 {"configs", graph.measurements},
                                 {"distinct_configs", graph.distinct_configs},
                                 {"repeated_configs", nullptr},
                                 {"noise", nullptr},
                                 {"ceiling", nullptr},
                                 {"interval", nullptr},
                                 {"reason", nullptr}};
  if (!ceiling.value) {
    json["reason"] = ceiling.reason;
    return json;
  }
  json["repeated_configs"] = ceiling.repeated_configs;
  json["noise"] = ceiling.noise;
  json["ceiling"] = *ceiling.value;
  json["interval"] = {ceiling.low, ceiling.high};
  json["normal_assumed"] = ceiling.normal_assumed;
  return json;
}

nlohmann::ordered_json to_json(const std::vector<GraphCeiling>& graphs) {
  nlohmann::ordered_json json = {{"graphs", nlohmann::ordered_json::array()},
                                 {"mean", nlohmann::ordered_json::object()}};
  for (const GraphCeiling& graph : graphs) json["graphs"].push_back(to_json(graph));
  for (const std::string_view split : kSplits)
    if (const MeanCeiling mean = mean_ceiling(graphs, split); mean.value)
      json["mean"][std::string(split)] = *mean.value;
  return json;
}

std::string_view name_of(MeasuredOrder order) {
  return order == MeasuredOrder::random ? "random" : "searched";
}

// Prints the rows that data.entropy_filter would remove.
void print_filter(const CheckedCollection& checked) {
  std::int64_t measurements = 0, filtered = 0;
  std::vector<std::string> whole;  // graphs that lose all rows
  for (const CheckedCollection::Graph& graph : checked.graphs) {
    if (!graph.has_times) continue;
    measurements += graph.measurements;
    filtered += graph.filtered;
    if (graph.filtered == graph.measurements) whole.push_back(graph.split + " " + graph.name);
  }
  print("data.entropy_filter={} would remove {} of {}, all of {}{}{}\n", checked.least_entropy,
        format_count(filtered), counted(measurements, "measurement"),
        counted(std::ssize(whole), "graph"), whole.empty() ? "" : ": ", join(whole, ", "));
}

void print_collection(const CheckedCollection& checked) {
  const auto count = [&](auto&& condition) {
    return format_count(std::ranges::count_if(checked.graphs, condition));
  };
  print(
      "{}: {}, {} suspect; {} without run times, {} with too few for any check; order of "
      "measurement: {}\n",
      checked.collection.name, counted(std::ssize(checked.graphs), "graph"),
      count([](const CheckedCollection::Graph& graph) { return !graph.suspicions.empty(); }),
      count([](const CheckedCollection::Graph& graph) { return !graph.has_times; }),
      count([](const CheckedCollection::Graph& graph) {
        return graph.has_times && graph.checks.empty();
      }),
      name_of(checked.order));
  for (const CheckedCollection::Graph& graph : checked.graphs) {
    if (graph.suspicions.empty()) continue;
    print("{} {} ({})\n", graph.split, graph.name, counted(graph.measurements, "measurement"));
    for (const MeasurementCheck& check : graph.suspicions) print("  {}\n", describe(check));
  }
  if (!checked.collection.is_tile()) print_filter(checked);
  bool told = false;
  for (const std::string_view split : kSplits) {
    const std::string exclusion = exclusion_of(checked, split);
    if (exclusion.empty()) continue;
    if (!told) print("to leave them out:");
    told = true;
    print(" {}", exclusion);
  }
  print("{}\n", told ? "\n" : "");
}

nlohmann::ordered_json to_json(const MeasurementCheck& check, bool suspect) {
  return {{"check", name_of(check.kind)}, {"suspect", suspect},
          {"value", check.value},         {"limit", check.limit},
          {"by_chance", check.by_chance}, {"p", check.p},
          {"first_row", check.first_row}, {"last_row", check.last_row},
          {"evidence", describe(check)}};
}

nlohmann::ordered_json to_json(const CheckedCollection& checked) {
  nlohmann::ordered_json json = {{"order", name_of(checked.order)},
                                 {"entropy_filter", checked.least_entropy},
                                 {"graphs", nlohmann::ordered_json::array()}};
  for (const CheckedCollection::Graph& graph : checked.graphs) {
    nlohmann::ordered_json entry = {{"name", graph.name},
                                    {"split", graph.split},
                                    {"measurements", graph.measurements},
                                    {"has_times", graph.has_times},
                                    {"suspect", !graph.suspicions.empty()},
                                    {"filtered_by_entropy", graph.filtered},
                                    {"checks", nlohmann::ordered_json::array()}};
    for (const MeasurementCheck& check : graph.checks) {
      const bool suspect = std::ranges::any_of(
          graph.suspicions, [&](const MeasurementCheck& s) { return s.kind == check.kind; });
      entry["checks"].push_back(to_json(check, suspect));
    }
    json["graphs"].push_back(std::move(entry));
  }
  for (const std::string_view split : kSplits)
    json["exclude"][std::string(split)] = exclusion_of(checked, split);
  return json;
}

}  // namespace

void inspect_ceilings(const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json) {
  ThreadPool pool(usable_cores());
  nlohmann::ordered_json all;
  for (const Collection& collection : collections) {
    const std::vector<GraphCeiling> graphs = collection_ceilings(shard_root, collection, pool);
    if (json)
      all[collection.name] = to_json(graphs);
    else
      print_collection(collection, graphs);
  }
  if (json) print_json(all);
}

Option add_suspect_options(Command command, InspectSuspectArguments& arguments) {
  const Option suspects =
      command.add_flag("--suspects", arguments.asked,
                       "Show the graphs whose run times look corrupted, with the evidence");
  command
      .add_option("--order", arguments.order,
                  "With --suspects: the order of measurement, auto (random for layout:X:random), "
                  "random or searched")
      .one_of({"auto", "random", "searched"})
      .needs(suspects)
      .show_default();
  return suspects;
}

void inspect_suspects(const InspectSuspectArguments& arguments,
                      const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json) {
  std::optional<MeasuredOrder> order;
  if (arguments.order == "random") order = MeasuredOrder::random;
  if (arguments.order == "searched") order = MeasuredOrder::searched;
  ThreadPool pool(usable_cores());
  nlohmann::ordered_json all;
  for (const Collection& collection : collections) {
    const CheckedCollection checked = check_collection(shard_root, collection, order, pool);
    if (json)
      all[collection.name] = to_json(checked);
    else
      print_collection(checked);
  }
  if (json) print_json(all);
}

}  // namespace tpudist
