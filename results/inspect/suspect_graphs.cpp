#include "results/inspect/suspect_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/hash.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "data/shards/entropy_filter.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {
namespace {

CheckedCollection::Graph check_graph(const GraphEntry& entry, MeasuredOrder order,
                                     double least_entropy) {
  CheckedCollection::Graph graph{entry.name, entry.split, entry.configs, false, 0, {}, {}};
  const RunTimes times = GraphReader(entry).read_run_times();
  graph.has_times = std::ranges::none_of(times.runtime, [](std::int64_t t) { return t == 0; });
  if (!graph.has_times) return graph;
  const std::vector<bool> kept = kept_by_entropy(times.runtime, least_entropy);
  graph.filtered = std::ranges::count(kept, false);
  std::vector<double> targets;
  for (std::int64_t config = 0; config < times.configs(); ++config)
    targets.push_back(times.target(config));
  graph.checks = check_measurements(targets, times.group, order, hash64(entry.name));
  return graph;
}

// A pattern that matches this name alone, in the quotes of YAML.
std::string pattern_of(const std::string& name) {
  std::string pattern = "\"";
  for (const char c : escape_glob(name)) {
    if (c == '"' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern + "\"";
}

}  // namespace

MeasuredOrder measured_order(const Collection& collection) {
  return !collection.is_tile() && collection.name.ends_with(":random") ? MeasuredOrder::random
                                                                       : MeasuredOrder::searched;
}

CheckedCollection check_collection(const std::filesystem::path& shard_root,
                                   const Collection& collection, std::optional<MeasuredOrder> order,
                                   ThreadPool& pool) {
  CheckedCollection checked{collection, 0, order.value_or(measured_order(collection)), {}};
  checked.least_entropy = checked.order == MeasuredOrder::random ? 0.3 : 3.0;
  const std::vector<GraphEntry> entries = list_graphs(shard_root, collection);
  check_shard_hashes(entries, pool);
  checked.graphs.resize(entries.size());
  pool.parallel_for(std::ssize(entries), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    checked.graphs[at] = check_graph(entries[at], checked.order, checked.least_entropy);
  });
  std::int64_t checks = 0;
  for (const CheckedCollection::Graph& graph : checked.graphs) checks += std::ssize(graph.checks);
  for (CheckedCollection::Graph& graph : checked.graphs) {
    std::ranges::copy_if(graph.checks, std::back_inserter(graph.suspicions),
                         [&](const MeasurementCheck& check) { return check.is_suspect(checks); });
  }
  return checked;
}

std::string exclusion_of(const CheckedCollection& checked, std::string_view split) {
  std::vector<std::string> patterns;
  for (const CheckedCollection::Graph& graph : checked.graphs) {
    if (graph.split == split && !graph.suspicions.empty())
      patterns.push_back(pattern_of(graph.name));
  }
  if (patterns.empty() || split == "test") return {};
  return shell_quoted(fmt::format("data.exclude.{}=[{}]", split, join(patterns, ", ")));
}

}  // namespace tpudist
