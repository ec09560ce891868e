#include "data/loading/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "data/schema/merged_collection.hpp"

namespace tpudist {
namespace {

std::string quoted(const std::vector<std::string>& patterns) {
  return patterns.empty() ? "nothing" : fmt::format("'{}'", join(patterns, "', '"));
}

std::vector<GraphEntry> select_graphs(const DatasetOptions& options, const std::string& split,
                                      const std::vector<std::string>& include,
                                      const std::vector<std::string>& exclude) {
  if (std::ranges::find(kSplits, split) == std::end(kSplits))
    throw ConfigError(fmt::format("unknown split '{}'; the splits are train, valid, test", split));
  const std::vector<GraphEntry> found = list_graphs(options.shards, options.collection, split);
  const auto other = std::ranges::find_if(
      found, [&](const GraphEntry& entry) { return entry.schema != options.collection.schema; });
  if (other != found.end()) {
    const std::string_view part = collection_of_id(other->name);
    throw DataError(fmt::format(
        "{}: the graphs of {} have {}; those asked for have {}: this network was made for others",
        options.shards.string(), part.empty() ? options.collection.name : part,
        to_text(other->schema), to_text(options.collection.schema)));
  }
  std::vector<GraphEntry> entries = filter_graphs(found, split, include, exclude);
  if (!entries.empty()) return entries;
  const std::string what = fmt::format("{} {}", options.collection.name, split);
  if (found.empty()) {
    throw ConfigError(
        fmt::format("the shards in {} hold no graph of {}", options.shards.string(), what));
  }
  throw ConfigError(fmt::format("none of the {} graphs of {} is left: included {}, excluded {}",
                                found.size(), what, include.empty() ? "all" : quoted(include),
                                quoted(exclude)));
}

}  // namespace

std::vector<GraphEntry> select_graphs(const DatasetOptions& options) {
  std::vector<GraphEntry> entries =
      select_graphs(options, options.split, options.include, options.exclude);
  if (!options.second) return entries;
  const SecondSplit& second = *options.second;
  for (GraphEntry& entry : select_graphs(options, second.name, second.include, second.exclude))
    entries.push_back(std::move(entry));
  return entries;
}

std::vector<GraphEntry> filter_graphs(std::span<const GraphEntry> graphs, std::string_view split,
                                      const std::vector<std::string>& include,
                                      const std::vector<std::string>& exclude) {
  std::vector<GraphEntry> left;
  std::ranges::copy_if(graphs, std::back_inserter(left), [&](const GraphEntry& graph) {
    return graph.split == split && (include.empty() || fits_graph(include, graph.name)) &&
           !fits_graph(exclude, graph.name);
  });
  return left;
}

std::uint64_t hash_selection(const DatasetOptions& options, std::span<const GraphEntry> graphs) {
  Hasher hasher;
  hasher.update(std::string_view("tpudist selection 1"));
  hasher.update(std::string_view(options.collection.name));
  hasher.update(std::string_view(options.splits()));
  hasher.update(options.duplicates);
  if (options.max_configs > 0) hasher.update(options.max_configs);
  if (options.least_entropy > 0) hasher.update(options.least_entropy);
  for (const GraphEntry& graph : graphs) {
    hasher.update(std::string_view(graph.name));
    hasher.update(graph.source.hash);
    hasher.update(graph.configs);
    if (options.second) hasher.update(std::string_view(graph.split));
  }
  return hasher.digest();
}

}  // namespace tpudist
