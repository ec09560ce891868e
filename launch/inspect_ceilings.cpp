#include "launch/inspect_ceilings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/numbers.hpp"
#include "data/ceilings/graph_ceilings.hpp"
#include "launch/output.hpp"

namespace tpudist {
namespace {

std::string noise_text(const NoiseCeiling& ceiling) {
  return ceiling.value ? fmt::format("{:.4f} %", 100 * ceiling.noise) : "-";
}

void print_collection(const Collection& collection, const std::vector<GraphCeiling>& graphs) {
  std::size_t width = 5;  // "graph"
  for (const GraphCeiling& graph : graphs) width = std::max(width, graph.name.size());
  print("{}\n{:<5}  {:<{}}  {:>8} {:>8} {:>8}  {:>8}  {}\n", collection.name, "split", "graph",
        width, "configs", "distinct", "repeated", "noise", "ceiling (95 % interval)");
  for (const GraphCeiling& graph : graphs) {
    const bool known = graph.ceiling.value.has_value();
    print("{:<5}  {:<{}}  {:>8} {:>8} {:>8}  {:>8}  {}\n", graph.split, graph.name, width,
          graph.measurements, graph.distinct_configs,
          known ? std::to_string(graph.ceiling.repeated_configs) : "-", noise_text(graph.ceiling),
          to_text(graph.ceiling));
  }
  for (const std::string_view split : kSplits) {
    const MeanCeiling mean = mean_ceiling(graphs, split);
    if (!mean.value) continue;
    print("{:<5}  mean ceiling {:.4f} of {} of {} graphs\n", split, *mean.value,
          format_count(mean.graphs), format_count(mean.of));
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
  return json;
}

nlohmann::ordered_json to_json(const std::vector<GraphCeiling>& graphs) {
  nlohmann::ordered_json json = {{"graphs", nlohmann::ordered_json::array()},
                                 {"mean", nlohmann::ordered_json::object()}};
  for (const GraphCeiling& graph : graphs) json["graphs"].push_back(to_json(graph));
  for (const std::string_view split : kSplits) {
    if (const MeanCeiling mean = mean_ceiling(graphs, split); mean.value)
      json["mean"][std::string(split)] = *mean.value;
  }
  return json;
}

}  // namespace

void inspect_ceilings(const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json) {
  ThreadPool pool(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  nlohmann::ordered_json all;
  for (const Collection& collection : collections) {
    const std::vector<GraphCeiling> graphs = collection_ceilings(shard_root, collection, pool);
    if (json) {
      all[collection.name] = to_json(graphs);
    } else {
      print_collection(collection, graphs);
    }
  }
  if (json) print("{}\n", all.dump(1));
}

}  // namespace tpudist
