#include "data/loading/fold_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "core/text_table.hpp"
#include "data/loading/fold_file.hpp"
#include "data/loading/selection.hpp"
#include "data/schema/merged_collection.hpp"
#include "data/schema/model_family.hpp"
#include "data/shards/manifest.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {
namespace {

std::optional<Collection> sibling_of(const Collection& collection) {
  if (collection.is_tile()) return std::nullopt;
  const std::size_t colon = collection.name.rfind(':');
  const std::string source = collection.name.substr(0, colon + 1),
                    search = collection.name.substr(colon + 1);
  if (search == "random") return Collection{source + "default"};
  if (search == "default") return Collection{source + "random"};
  return std::nullopt;
}

// A graph in several collections weighs its largest number of nodes, so that the order of
// collections does not matter.
std::vector<FoldedGraph> selected_graphs(const FoldRequest& request,
                                         std::span<const Collection> collections) {
  std::map<std::string, std::int64_t> nodes;
  const auto select = [&](const std::string& split, const std::vector<std::string>& include,
                          const std::vector<std::string>& exclude) {
    for (const Collection& collection : collections) {
      std::vector<GraphEntry> entries = list_graphs(request.shards, collection, split);
      if (is_joined(request.collection)) {  // ids select its graphs
        for (GraphEntry& entry : entries) entry.name = collection.name + ":" + entry.name;
      }
      for (const GraphEntry& entry : filter_graphs(entries, split, include, exclude)) {
        std::int64_t& most = nodes[std::string(graph_of_id(entry.name))];
        most = std::max(most, entry.nodes);
      }
    }
  };
  select("train", request.include, request.exclude);
  if (request.with_valid) select("valid", request.include_valid, request.exclude_valid);
  std::vector<FoldedGraph> graphs;
  for (const auto& [name, count] : nodes) graphs.push_back({name, model_family(name), count, 0});
  return graphs;
}

std::vector<int> assigned(const std::vector<FoldedGraph>& graphs, const FoldRequest& request) {
  std::vector<std::string> names;
  std::vector<double> weights;
  for (const FoldedGraph& graph : graphs) {
    names.push_back(graph.name);
    weights.push_back(static_cast<double>(graph.nodes));
  }
  return assign_folds(names, weights, request.folds, request.seed);
}

// The content of a fold or a family.
struct Content {
  std::int64_t families = 0, graphs = 0, nodes = 0;
};

}  // namespace

const FoldedGraph* FoldTable::find(std::string_view name) const {
  name = graph_of_id(name);
  const auto at = std::ranges::lower_bound(graphs, name, {}, &FoldedGraph::name);
  return at != graphs.end() && at->name == name ? &*at : nullptr;
}

std::vector<Collection> collections_of_folds(const std::filesystem::path& shards,
                                             const Collection& collection) {
  std::vector<Collection> collections = parts_of(collection);
  for (const Collection& part : parts_of(collection)) {
    const std::optional<Collection> sibling = sibling_of(part);
    if (sibling && std::filesystem::exists(shards / sibling->folder() / kManifestName) &&
        std::ranges::find(collections, sibling->name, &Collection::name) == collections.end())
      collections.push_back(*sibling);
  }
  std::ranges::sort(collections, {}, &Collection::name);
  return collections;
}

FoldTable split_into_folds(const FoldRequest& request) {
  FoldTable table;
  table.folds = request.folds;
  table.with_valid = request.with_valid;
  const bool by_file = !request.file.empty();
  const std::vector<Collection> collections =
      by_file ? parts_of(request.collection)
              : collections_of_folds(request.shards, request.collection);
  for (const Collection& collection : collections) table.collections.push_back(collection.name);
  table.origin = by_file ? request.file.string() : fmt::format("seed {}", request.seed);
  table.graphs = selected_graphs(request, collections);
  const std::vector<int> folds =
      by_file ? FoldFile::read(request.file).folds_of(table.graphs, request.folds)
              : assigned(table.graphs, request);
  for (std::size_t g = 0; g < folds.size(); ++g) table.graphs[g].fold = folds[g];
  return table;
}

std::string split_family_warning(const FoldTable& table) {
  std::map<std::string, int> first;
  std::set<std::string> split;
  for (const FoldedGraph& graph : table.graphs) {
    if (first.emplace(graph.family, graph.fold).first->second != graph.fold)
      split.insert(graph.family);
  }
  if (split.empty()) return "";
  return fmt::format(
      "{} splits model families over several folds: {}; members are scored out of fold on families "
      "that they trained on",
      table.origin, join(std::vector<std::string>(split.begin(), split.end()), ", "));
}

std::uint64_t hash_of_folds(const FoldTable& table, std::vector<std::string> names) {
  std::ranges::sort(names);
  Hasher hasher;
  hasher.update(std::string_view("tpudist folds 1"));
  hasher.update(table.folds);
  for (const std::string& name : names) {
    const FoldedGraph* graph = table.find(name);
    if (!graph) throw std::out_of_range("no fold has the graph " + name);
    hasher.update(std::string_view(name));
    hasher.update(graph->fold);
  }
  return hasher.digest();
}

std::string fold_table_text(const FoldTable& table) {
  std::vector<Content> folds(static_cast<std::size_t>(table.folds));
  std::map<std::pair<std::string, int>, Content> families;  // a file may divide a family
  for (const FoldedGraph& graph : table.graphs) {
    Content& family = families[{graph.family, graph.fold}];
    Content& fold = folds[static_cast<std::size_t>(graph.fold)];
    if (family.graphs == 0) ++fold.families;
    for (Content* content : {&family, &fold}) {
      ++content->graphs;
      content->nodes += graph.nodes;
    }
  }
  std::string text = fmt::format("{} folds of the {} graphs of {} ({})\n\n", table.folds,
                                 table.with_valid ? "training and validation" : "training",
                                 join(table.collections, " and "), table.origin);
  TextTable by_fold({right("fold"), right("families"), right("graphs"), right("nodes", 12)});
  for (std::size_t f = 0; f < folds.size(); ++f)
    by_fold.rows.push_back(
        {f, folds[f].families, folds[f].graphs, TableCell::count(folds[f].nodes)});
  TextTable by_family({"family", right("fold"), right("graphs"), right("nodes", 12)});
  for (const auto& [key, family] : families)
    by_family.rows.push_back(
        {key.first, key.second, family.graphs, TableCell::count(family.nodes)});
  return text + by_fold.to_text() + "\n" + by_family.to_text();
}

}  // namespace tpudist
