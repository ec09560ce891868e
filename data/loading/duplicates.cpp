#include "data/loading/duplicates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/means.hpp"
#include "core/random.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/entropy_filter.hpp"

namespace tpudist {
namespace {

// Returns the number of groups; checks their numbering.
std::int32_t count_groups(const RunTimes& times, std::string_view where) {
  std::int32_t groups = 0;
  for (std::size_t i = 0; i < times.group.size(); ++i) {
    if (times.group[i] < 0 || times.group[i] > groups) {
      throw DataError(
          fmt::format("{}/config_group: value {} of configuration {} is not numbered by "
                      "first occurrence; the file is damaged, convert again",
                      where, times.group[i], i));
    }
    groups += times.group[i] == groups;
  }
  return groups;
}

double merge(std::span<double> values, DuplicatesPolicy policy) {
  switch (policy) {
    case DuplicatesPolicy::min:
      return std::ranges::min(values);
    case DuplicatesPolicy::mean:
      return mean(values);
    case DuplicatesPolicy::median:
      return median({values.begin(), values.end()});
    default:
      return values.front();
  }
}

MergedRows all_rows(const RunTimes& times) {
  std::vector<std::int64_t> configs(static_cast<std::size_t>(times.configs()));
  std::iota(configs.begin(), configs.end(), 0);
  std::vector<double> targets;
  for (const std::int64_t config : configs) targets.push_back(times.target(config));
  return {std::move(configs), std::move(targets)};
}

// The measurements that pass the filter, with new group numbers. Appends their original numbers to
// `configs`.
RunTimes filtered_times(const RunTimes& times, double least_entropy,
                        std::vector<std::int64_t>& configs) {
  const std::vector<bool> kept = kept_by_entropy(times.runtime, least_entropy);
  std::vector<std::int64_t> runtime, normalizer;
  std::vector<std::int32_t> group;
  std::map<std::int32_t, std::int32_t> number;  // by old group
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    configs.push_back(static_cast<std::int64_t>(i));
    runtime.push_back(times.runtime[i]);
    if (!times.normalizer.empty()) normalizer.push_back(times.normalizer[i]);
    const auto next = static_cast<std::int32_t>(number.size());
    group.push_back(number.emplace(times.group[i], next).first->second);
  }
  RunTimes filtered;
  filtered.runtime = std::move(runtime);
  filtered.normalizer = std::move(normalizer);
  filtered.group = std::move(group);
  return filtered;
}

}  // namespace

MergedRows merge_duplicates(const RunTimes& times, DuplicatesPolicy policy,
                            std::string_view where) {
  if (policy == DuplicatesPolicy::keep) return {};
  const auto groups = static_cast<std::size_t>(count_groups(times, where));

  // The targets sorted by group, then by configuration.
  std::vector<std::size_t> begin(groups + 1);
  for (const std::int32_t group : times.group) ++begin[static_cast<std::size_t>(group) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
  std::vector<double> targets(times.group.size());
  std::vector<std::int64_t> configs(groups);
  for (std::size_t i = 0; i < times.group.size(); ++i) {
    const auto group = static_cast<std::size_t>(times.group[i]);
    const auto config = static_cast<std::int64_t>(i);
    if (next[group] == begin[group]) configs[group] = config;
    targets[next[group]++] = times.target(config);
  }

  std::vector<double> merged(groups);
  for (std::size_t group = 0; group < groups; ++group) {
    const auto equal = std::span(targets).subspan(begin[group], begin[group + 1] - begin[group]);
    merged[group] = merge(equal, policy);
  }
  return {std::move(configs), std::move(merged)};
}

MergedRows choose_rows(const RunTimes& times, const RowRules& rules, std::string_view graph,
                       std::string_view where) {
  if (rules.least_entropy > 0) {
    count_groups(times, where);
    std::vector<std::int64_t> configs;
    const RunTimes filtered = filtered_times(times, rules.least_entropy, configs);
    RowRules others = rules;
    others.least_entropy = 0;
    MergedRows rows =
        others.keep_all() ? all_rows(filtered) : choose_rows(filtered, others, graph, where);
    std::vector<std::int64_t> whole;
    for (const std::int64_t config : rows.configs) whole.push_back(configs[config]);
    rows.configs = std::move(whole);
    return rows;
  }
  MergedRows rows = merge_duplicates(times, rules.duplicates, where);
  if (rules.max_configs == 0) return rows;
  if (rules.duplicates == DuplicatesPolicy::keep) rows = all_rows(times);
  const std::size_t total = rows.configs.size(), most = static_cast<std::size_t>(rules.max_configs);
  if (total <= most) return rows;
  const KeyedPermutation shuffled(total, mix_key({hash64(graph_of_id(graph)), total}));
  std::vector<std::size_t> chosen(most);
  for (std::size_t i = 0; i < most; ++i) chosen[i] = shuffled(i);
  std::ranges::sort(chosen);
  std::vector<std::int64_t> configs;
  std::vector<double> targets;
  for (const std::size_t row : chosen) {
    configs.push_back(rows.configs[row]);
    targets.push_back(rows.targets[row]);
  }
  return {std::move(configs), std::move(targets)};
}

}  // namespace tpudist
