#include "data/loading/fold_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/text.hpp"
#include "data/schema/merged_collection.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kLargestFile = std::size_t{16} << 20;
constexpr int kMostFolds = 1 << 20;
constexpr std::size_t kNamed = 5;  // most graphs that a message names

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
  }
  for (const YamlEntry& section : root.entries) {
    if (section.key == "folds") {
      file.stated_ = read_count(section.value, 1);
      if (!file.stated_) mistakes.add(section.value.place, "must be the number of folds");
      continue;
    }
    if (section.key != "graphs" && section.key != "families") {
      mistakes.add(section.place, fmt::format("{} is none of `folds`, `graphs` and `families`",
                                              quote_briefly(section.key)));
      continue;
    }
    if (!section.value.is_map()) {
      mistakes.add(section.value.place,
                   fmt::format("`{}` must be a map from names to folds", section.key));
    }
    for (const YamlEntry& line : section.value.entries) {
      const std::optional<int> fold = read_count(line.value, 0);
      if (!fold || (file.stated_ && *fold >= *file.stated_)) {
        mistakes.add(line.value.place,
                     file.stated_ ? fmt::format("must be a fold, 0 to {}", *file.stated_ - 1)
                                  : "must be the number of a fold, from 0");
        continue;
      }
      file.lines_.push_back({section.key == "families", line.key, *fold, line.place});
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
      named[static_cast<std::size_t>(line.fold)] = true;
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
    uncovered.resize(std::min(all, kNamed));
    throw ConfigError(
        fmt::format("{}: no line covers {}{}; add a line with the fold of each, by "
                    "graph or by family",
                    name_, join(uncovered, ", "),
                    all > kNamed ? fmt::format(" and {} more", all - kNamed) : ""));
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
