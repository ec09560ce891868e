#include "data/loading/fold_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>

#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "core/text_table.hpp"
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
std::vector<FoldedGraph> selected_graphs(const DatasetOptions& wanted,
                                         std::span<const Collection> collections) {
  std::map<std::string, std::int64_t> nodes;
  const auto select = [&](const std::string& split, const std::vector<std::string>& include,
                          const std::vector<std::string>& exclude) {
    for (const Collection& collection : collections) {
      std::vector<GraphEntry> entries = list_graphs(wanted.shards, collection, split);
      if (is_joined(wanted.collection)) {  // ids select its graphs
        for (GraphEntry& entry : entries) entry.name = collection.name + ":" + entry.name;
      }
      for (const GraphEntry& entry : filter_graphs(entries, split, include, exclude)) {
        std::int64_t& most = nodes[std::string(graph_of_id(entry.name))];
        most = std::max(most, entry.nodes);
      }
    }
  };
  select("train", wanted.include, wanted.exclude);
  if (wanted.second) select("valid", wanted.second->include, wanted.second->exclude);
  std::vector<FoldedGraph> graphs;
  for (const auto& [name, count] : nodes) graphs.push_back({name, model_family(name), count, 0});
  return graphs;
}

std::vector<int> assigned(const std::vector<FoldedGraph>& graphs, int folds, std::uint64_t seed) {
  std::vector<std::string> names;
  std::vector<double> weights;
  for (const FoldedGraph& graph : graphs) {
    names.push_back(graph.name);
    weights.push_back(static_cast<double>(graph.nodes));
  }
  return assign_folds(names, weights, folds, seed);
}

// The content of a fold or a family.
struct Content {
  std::int64_t families = 0, graphs = 0, nodes = 0;
};

constexpr std::size_t kLargestFile = std::size_t{16} << 20;
constexpr int kMostFolds = 1 << 20;
constexpr std::size_t kNamedGraphs = 5;  // most graphs that a message names

bool is_pattern(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

// A whole number from `least`, else nothing.
std::optional<int> read_count(const YamlValue& value, int least) {
  const auto number = parse_integer(value.text);
  if (value.kind != YamlValue::Kind::scalar || number.error || number.value < least ||
      number.value > kMostFolds) {
    return std::nullopt;
  }
  return static_cast<int>(number.value);
}

void stop_if_mistaken(const YamlMistakes& mistakes) {
  if (!mistakes.empty()) throw ConfigError(mistakes.to_string());
}

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

FoldTable split_into_folds(const DatasetOptions& graphs, int folds, std::uint64_t seed,
                           const std::filesystem::path& file) {
  FoldTable table;
  table.folds = folds;
  table.with_valid = graphs.second.has_value();
  const std::vector<Collection> collections =
      file.empty() ? collections_of_folds(graphs.shards, graphs.collection)
                   : parts_of(graphs.collection);
  for (const Collection& collection : collections) table.collections.push_back(collection.name);
  table.origin = file.empty() ? fmt::format("seed {}", seed) : file.string();
  table.graphs = selected_graphs(graphs, collections);
  const std::vector<int> fold_of = file.empty()
                                       ? assigned(table.graphs, folds, seed)
                                       : FoldFile::read(file).folds_of(table.graphs, folds);
  for (std::size_t g = 0; g < fold_of.size(); ++g) table.graphs[g].fold = fold_of[g];
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
    Content& fold = folds[graph.fold];
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

FoldFile FoldFile::read(const std::filesystem::path& path) {
  return parse(read_text_file(path, kLargestFile), path.string());
}

FoldFile FoldFile::parse(std::string_view yaml, std::string_view name) {
  FoldFile file;
  file.name_ = name;
  YamlMistakes mistakes;
  const auto source =
      std::make_shared<const YamlLocation::Source>(YamlLocation::Source{std::string(name), 0});
  const YamlValue root = parse_yaml(yaml, source, mistakes);
  if (!root.is_map()) {
    mistakes.add(YamlLocation{.source = source, .line = 0, .column = 0},
                 "a fold file is a map with `graphs` or `families` or both");
    stop_if_mistaken(mistakes);
  }
  for (const YamlValue& section : root.items) {
    if (section.key == "folds") {
      file.stated_ = read_count(section, 1);
      if (!file.stated_) mistakes.add(section.place, "must be the number of folds");
      continue;
    }
    if (section.key != "graphs" && section.key != "families") {
      mistakes.add(section.key_place, fmt::format("{} is none of `folds`, `graphs` and `families`",
                                                  quote_briefly(section.key)));
      continue;
    }
    if (!section.is_map()) {
      mistakes.add(section.place,
                   fmt::format("`{}` must be a map from names to folds", section.key));
      continue;
    }
    for (const YamlValue& line : section.items) {
      const std::optional<int> fold = read_count(line, 0);
      if (!fold || (file.stated_ && *fold >= *file.stated_)) {
        mistakes.add(line.place, file.stated_
                                     ? fmt::format("must be a fold, 0 to {}", *file.stated_ - 1)
                                     : "must be the number of a fold, from 0");
        continue;
      }
      file.lines_.push_back({section.key == "families", line.key, *fold, line.key_place});
    }
  }
  stop_if_mistaken(mistakes);
  if (file.lines_.empty()) {
    throw ConfigError(fmt::format("{}: names no fold; give `graphs` or `families`", name));
  }
  return file;
}

int FoldFile::folds() const {
  return stated_ ? *stated_ : std::ranges::max(lines_, {}, &Line::fold).fold + 1;
}

std::map<std::string, int> FoldFile::graph_lines() const {
  std::map<std::string, int> graphs;
  for (const Line& line : lines_) {
    if (!line.of_family) graphs[line.pattern] = line.fold;
  }
  return graphs;
}

std::vector<const FoldFile::Line*> FoldFile::lines_of(const FoldedGraph& graph) const {
  std::vector<const Line*> found;
  for (const Line& line : lines_) {
    const std::string_view name = line.of_family ? graph.family : graph_of_id(graph.name);
    if (line.pattern == name || (is_pattern(line.pattern) && glob_match(line.pattern, name)))
      found.push_back(&line);
  }
  return found;
}

void FoldFile::check_folds(int folds) const {
  if (stated_ && *stated_ != folds) {
    throw ConfigError(
        fmt::format("{}: is for {} folds, but {} are asked for", name_, *stated_, folds));
  }
  if (stated_) return;
  YamlMistakes mistakes;
  std::vector<bool> named(static_cast<std::size_t>(folds), false);
  for (const Line& line : lines_) {
    if (line.fold < folds)
      named[line.fold] = true;
    else
      mistakes.add(line.place, fmt::format("fold {} of {}: they count from 0", line.fold, folds));
  }
  stop_if_mistaken(mistakes);
  if (const auto none = std::ranges::find(named, false); none != named.end()) {
    throw ConfigError(fmt::format("{}: no line has fold {}, but {} folds are asked for", name_,
                                  none - named.begin(), folds));
  }
}

std::vector<int> FoldFile::folds_of(std::span<const FoldedGraph> graphs, int folds) const {
  check_folds(folds);
  YamlMistakes mistakes;
  std::vector<int> result;
  std::vector<std::string> uncovered;
  for (const FoldedGraph& graph : graphs) {
    const std::vector<const Line*> lines = lines_of(graph);
    result.push_back(lines.empty() ? 0 : lines.front()->fold);
    if (lines.empty()) uncovered.push_back(fmt::format("{} ({})", graph.name, graph.family));
    for (std::size_t i = 1; i < lines.size(); ++i) {
      mistakes.add(lines[i]->place,
                   fmt::format("covers {}, as line {} does; one line must cover a graph",
                               graph.name, lines.front()->place.line));
    }
  }
  stop_if_mistaken(mistakes);
  if (!uncovered.empty()) {
    const std::size_t all = uncovered.size();
    uncovered.resize(std::min(all, kNamedGraphs));
    throw ConfigError(
        fmt::format("{}: no line covers {}{}; add a line with the fold of each, by "
                    "graph or by family",
                    name_, join(uncovered, ", "),
                    all > kNamedGraphs ? fmt::format(" and {} more", all - kNamedGraphs) : ""));
  }
  return result;
}

std::string fold_file_text(const FoldTable& table) {
  std::string text = fmt::format(
      "# {} folds of the {} graphs of {} ({}).\n"
      "# `ensemble.fold_file` takes this file.\n"
      "folds: {}\n"
      "graphs:\n",
      table.folds, table.with_valid ? "training and validation" : "training",
      join(table.collections, " and "), table.origin, table.folds);
  std::vector<const FoldedGraph*> order;
  for (const FoldedGraph& graph : table.graphs) order.push_back(&graph);
  std::ranges::stable_sort(order, [](const FoldedGraph* a, const FoldedGraph* b) {
    return std::tie(a->fold, a->family) < std::tie(b->fold, b->family);
  });
  for (const FoldedGraph* graph : order) {
    text += fmt::format("  {}: {}  # {}, {} nodes\n", format_yaml_text(escape_glob(graph->name)),
                        graph->fold, graph->family, graph->nodes);
  }
  return text;
}

}  // namespace tpudist
