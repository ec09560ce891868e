#include "data/shards/shard_statistics.hpp"

#include <algorithm>

#include "core/means.hpp"

namespace tpudist {

RunTimeStatistics run_time_statistics(const RunTimes& times) {
  struct Repeats {
    std::int64_t count = 0;
    double min = 0, max = 0;
  };
  RunTimeStatistics statistics;
  if (times.configs() == 0) return statistics;
  std::vector<Repeats> groups(static_cast<std::size_t>(*std::ranges::max_element(times.group)) + 1);
  for (std::int64_t i = 0; i < times.configs(); ++i) {
    Repeats& group = groups[static_cast<std::size_t>(times.group[static_cast<std::size_t>(i)])];
    const double target = times.target(i);
    group.min = group.count == 0 ? target : std::min(group.min, target);
    group.max = group.count == 0 ? target : std::max(group.max, target);
    ++group.count;
  }
  const auto [min, max] = std::ranges::minmax_element(times.runtime);
  statistics.min = *min;
  statistics.max = *max;
  statistics.distinct_configs = static_cast<std::int64_t>(groups.size());
  std::vector<double> spreads;
  for (const Repeats& group : groups) {
    statistics.most_repeats = std::max(statistics.most_repeats, group.count);
    if (group.count < 2) continue;
    ++statistics.repeated_configs;
    statistics.repeated_rows += group.count;
    if (group.min > 0) spreads.push_back(group.max / group.min - 1);
  }
  std::ranges::sort(spreads);
  if (!spreads.empty()) {
    statistics.spread = {quantile(spreads, 0.25), quantile(spreads, 0.5), quantile(spreads, 0.75)};
  }
  return statistics;
}

std::vector<GraphStatistics> collection_statistics(const std::filesystem::path& shard_root,
                                                   const Collection& collection) {
  std::vector<GraphStatistics> all;
  const std::vector<GraphEntry> entries = list_graphs(shard_root, collection);
  ThreadPool alone(1);
  check_shard_hashes(entries, alone);
  for (const GraphEntry& entry : entries) {
    all.push_back({entry, run_time_statistics(GraphReader(entry).read_run_times())});
  }
  return all;
}

}  // namespace tpudist
