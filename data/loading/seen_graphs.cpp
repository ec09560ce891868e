#include "data/loading/seen_graphs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/model_family.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kNamed = 5;

using Json = nlohmann::ordered_json;

template <typename T>
Json to_json(const Range<T>& range) {
  return {range.least, range.most};
}

template <typename T>
Range<T> range_of(const Json& json) {
  return {json.at(0).get<T>(), json.at(1).get<T>()};
}

std::string range_text(const Range<std::int64_t>& range) {
  return range.least == range.most
             ? format_count(range.least)
             : fmt::format("{} to {}", format_count(range.least), format_count(range.most));
}

// The key of a tuning file, which holds many modules, includes the name.
std::array<std::uint64_t, 2> keys_of(const GraphEntry& graph) {
  const std::uint64_t name = hash64(graph_of_id(graph.name));
  const bool alone = graph.source.path.ends_with(".npz");
  return {mix_key({graph.source.hash, alone ? 0 : name}),
          mix_key({name, static_cast<std::uint64_t>(graph.nodes),
                   static_cast<std::uint64_t>(graph.edges)})};
}

}  // namespace

void TrainedOn::add(const GraphEntry& graph, const std::vector<bool>& members) {
  if (std::ranges::find(members, true) == members.end()) return;
  for (const std::uint64_t key : keys_of(graph)) {
    TrainedGraph& own = (*this)[key];
    own.name = graph_of_id(graph.name);
    own.members.resize(std::max(own.members.size(), members.size()));
    for (std::size_t m = 0; m < members.size(); ++m) own.members[m] = own.members[m] || members[m];
  }
}

bool TrainedOn::knows(const GraphEntry& graph, std::size_t member) const {
  return std::ranges::any_of(keys_of(graph), [&](std::uint64_t key) {
    const auto found = find(key);
    return found != end() && member < found->second.members.size() && found->second.members[member];
  });
}

std::string TrainedOn::text(const Dataset& graphs) const {
  std::vector<std::string> known;
  std::set<std::string> families, related;
  for (const auto& [key, graph] : *this) families.insert(model_family(graph.name));
  for (int g = 0; g < graphs.size(); ++g) {
    const GraphEntry& graph = graphs.entry(g);
    const std::string family = model_family(graph.name);
    if (std::ranges::any_of(keys_of(graph), [&](std::uint64_t key) { return contains(key); }))
      known.push_back(graph.name);
    else if (families.contains(family))
      related.insert("model family " + family);
  }
  const std::size_t count = known.size();
  known.insert(known.end(), related.begin(), related.end());
  if (known.empty()) return {};
  return fmt::format(
      "trained on {} ({} of {} graphs): scores of what members know say little of unknown graphs; "
      "members that leave graphs out tell that (ensemble.folds, with `fold` in ensemble.vary)",
      first_of(known, kNamed), count, graphs.size());
}

void SeenGraphs::add(std::int64_t node_count, std::int64_t config_node_count,
                     std::span<const std::uint8_t> numbers, std::span<const float> values) {
  ++graphs;
  nodes.add(node_count);
  config_nodes.add(config_node_count);
  opcodes.insert(numbers.begin(), numbers.end());
  if (numbers.empty()) return;
  features.resize(values.size() / numbers.size());
  for (std::size_t at = 0; at < values.size(); at += features.size()) {
    for (std::size_t column = 0; column < features.size(); ++column)
      features[column].add(values[at + column]);
  }
}

SeenGraphs seen_graphs(const Dataset& dataset) {
  SeenGraphs seen;
  GraphReduction reduction = dataset.options().reduction;
  reduction.config_edges = false;  // config edges reduce nothing
  seen.reduction = to_text(reduction);
  for (int g = 0; g < dataset.size(); ++g) {
    const Graph& graph = dataset.graph(g);
    seen.add(dataset.entry(g).nodes, std::ssize(graph.config_nodes), graph.opcodes,
             graph.node_features);
  }
  return seen;
}

UnseenParts unseen_parts(const SeenGraphs& module, const SeenGraphs& seen) {
  if (module.features.size() != seen.features.size()) {
    throw DataError(fmt::format("the module has {} node features, the training graphs have {}",
                                module.features.size(), seen.features.size()));
  }
  UnseenParts unseen;
  std::ranges::set_difference(module.opcodes, seen.opcodes, std::back_inserter(unseen.opcodes));
  for (std::size_t column = 0; column < seen.features.size(); ++column) {
    if (!seen.features[column].holds(module.features[column])) unseen.features.push_back(column);
  }
  unseen.nodes = !seen.nodes.holds(module.nodes);
  unseen.config_nodes = !seen.config_nodes.holds(module.config_nodes);
  return unseen;
}

std::string unseen_text(const SeenGraphs& module, const SeenGraphs& seen,
                        const FeatureSchema& schema) {
  const UnseenParts unseen = unseen_parts(module, seen);
  std::vector<std::string> parts;
  if (!unseen.opcodes.empty()) {
    const bool of_hlo = schema == kLayoutSchema || schema == kTileSchema;
    std::vector<std::string> names;
    for (const int number : unseen.opcodes)
      names.push_back(of_hlo ? std::string(opcode_name(static_cast<std::uint8_t>(number)))
                             : fmt::format("opcode {}", number));
    parts.push_back(
        fmt::format("{} opcodes never seen ({})", names.size(), first_of(names, kNamed)));
  }
  if (!unseen.features.empty())
    parts.push_back(fmt::format("{} of {} node features outside of their range",
                                unseen.features.size(), seen.features.size()));
  const auto count = [&](const Range<std::int64_t>& own, const Range<std::int64_t>& range,
                         std::string_view what) {
    parts.push_back(
        fmt::format("{} {} (seen: {})", format_count(own.most), what, range_text(range)));
  };
  if (unseen.nodes) count(module.nodes, seen.nodes, "nodes");
  if (unseen.config_nodes) count(module.config_nodes, seen.config_nodes, "configurable nodes");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string seen_graphs_text(const SeenGraphs& seen) {
  Json least = Json::array(), most = Json::array();
  for (const Range<float>& range : seen.features) {
    least.push_back(range.least);
    most.push_back(range.most);
  }
  Json trained = Json::object();
  for (const auto& [key, graph] : seen.trained_on)
    trained[to_hex(key)] = {{"name", graph.name}, {"members", graph.members}};
  return Json{{"graphs", seen.graphs},
              {"reduce", seen.reduction},
              {"nodes", to_json(seen.nodes)},
              {"config_nodes", to_json(seen.config_nodes)},
              {"opcodes", seen.opcodes},
              {"node_features", {{"least", least}, {"most", most}}},
              {"trained_on", std::move(trained)}}
             .dump() +
         "\n";
}

SeenGraphs read_seen_graphs(const std::filesystem::path& file) {
  constexpr std::size_t kLargestFile = std::size_t{16} << 20;
  const std::string text = read_text_file(file, kLargestFile);
  try {
    const Json json = Json::parse(text);
    SeenGraphs seen;
    seen.graphs = json.at("graphs").get<std::int64_t>();
    seen.reduction = json.at("reduce").get<std::string>();
    seen.nodes = range_of<std::int64_t>(json.at("nodes"));
    seen.config_nodes = range_of<std::int64_t>(json.at("config_nodes"));
    seen.opcodes = json.at("opcodes").get<std::set<int>>();
    const Json& features = json.at("node_features");
    const auto least = features.at("least").get<std::vector<float>>();
    const auto most = features.at("most").get<std::vector<float>>();
    for (std::size_t column = 0; column < least.size(); ++column)
      seen.features.push_back({least[column], most.at(column)});
    for (const auto& [key, graph] : json.at("trained_on").items())
      seen.trained_on[from_hex(key).value()] = {graph.at("name").get<std::string>(),
                                                graph.at("members").get<std::vector<bool>>()};
    return seen;
  } catch (const std::exception& error) {
    throw DataError(fmt::format("{}: is damaged ({}); `tpudist train --resume` writes it again",
                                file.string(), json_fault(error.what())));
  }
}

}  // namespace tpudist
