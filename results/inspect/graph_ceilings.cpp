#include "results/inspect/graph_ceilings.hpp"

#include <algorithm>

#include "data/shards/shard_reader.hpp"

namespace tpudist {
namespace {

GraphCeiling ceiling_of(const GraphEntry& entry, bool is_tile) {
  const RunTimes times = GraphReader(entry).read_run_times();
  GraphCeiling graph{entry.name, entry.split, times.configs(), entry.distinct_configs, {}};
  if (is_tile) {
    graph.ceiling.reason = kNoTileCeiling;
  } else if (std::ranges::all_of(times.runtime, [](std::int64_t time) { return time == 0; })) {
    graph.ceiling.reason = "there are no run times";
  } else {
    const std::vector<double> targets(times.runtime.begin(), times.runtime.end());
    graph.ceiling = noise_ceiling(targets, times.group);
  }
  return graph;
}

}  // namespace

std::vector<GraphCeiling> collection_ceilings(const std::filesystem::path& shard_root,
                                              const Collection& collection, ThreadPool& pool) {
  const std::vector<GraphEntry> entries = list_graphs(shard_root, collection);
  std::vector<GraphCeiling> graphs(entries.size());
  pool.parallel_for(std::ssize(entries), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    graphs[at] = ceiling_of(entries[at], collection.is_tile());
  });
  return graphs;
}

MeanCeiling mean_ceiling(std::span<const GraphCeiling> graphs, std::string_view split) {
  MeanCeiling mean;
  double sum = 0;
  for (const GraphCeiling& graph : graphs) {
    if (graph.split != split) continue;
    ++mean.of;
    if (!graph.ceiling.value) continue;
    ++mean.graphs;
    sum += *graph.ceiling.value;
  }
  if (mean.graphs > 0) mean.value = sum / static_cast<double>(mean.graphs);
  return mean;
}

}  // namespace tpudist
