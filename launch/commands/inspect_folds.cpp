#include "launch/commands/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/log.hpp"
#include "data/loading/fold_table.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

nlohmann::ordered_json to_json(const FoldTable& table) {
  nlohmann::ordered_json graphs = nlohmann::ordered_json::array();
  for (const FoldedGraph& graph : table.graphs) {
    graphs.push_back({{"name", graph.name},
                      {"family", graph.family},
                      {"nodes", graph.nodes},
                      {"fold", graph.fold}});
  }
  return {{"collections", table.collections},
          {"folds", table.folds},
          {"origin", table.origin},
          {"graphs", graphs}};
}

// One table for collections that are split together.
std::vector<FoldTable> tables_of(const InspectFoldArguments& arguments,
                                 const std::filesystem::path& shards,
                                 const std::vector<std::string>& collections) {
  const int folds = arguments.folds > 0 ? arguments.folds : FoldFile::read(arguments.file).folds();
  std::vector<FoldTable> tables;
  for (const std::string& name : collections) {
    const bool there = std::ranges::any_of(tables, [&](const FoldTable& table) {
      return std::ranges::find(table.collections, name) != table.collections.end();
    });
    if (there) continue;
    DatasetOptions graphs{.shards = shards, .collection = Collection{name}};
    if (arguments.over == "train+valid") graphs.second = SecondSplit{"valid", {}, {}};
    tables.push_back(split_into_folds(graphs, folds, arguments.seed, arguments.file));
  }
  return tables;
}

}  // namespace

void add_fold_options(Command command, InspectFoldArguments& arguments) {
  const Option folds =
      command.add_option("--folds", arguments.folds, "Show so many folds of the graphs instead")
          .in_range(2, 1 << 20);
  command
      .add_option("--over", arguments.over,
                  "Of --folds and --fold-file: ensemble.fold_over, train or train+valid")
      .one_of({"train", "train+valid"})
      .show_default();
  const Option seed = command.add_option("--seed", arguments.seed, "Of --folds: ensemble.fold_seed")
                          .not_negative()
                          .needs(folds)
                          .show_default();
  command.add_option("--fold-file", arguments.file, "Show the folds that this file gives (YAML)")
      .existing_file()
      .excludes(seed);
  command.add_option("--write-folds", arguments.output,
                     "Write the folds that are shown as a file for ensemble.fold_file");
}

void inspect_folds(const InspectFoldArguments& arguments, const std::filesystem::path& shards,
                   const std::vector<std::string>& collections, bool json) {
  if (!arguments.output.empty()) check_output(arguments.output);
  const std::vector<FoldTable> tables = tables_of(arguments, shards, collections);
  if (!arguments.output.empty() && tables.size() > 1) {
    throw ConfigError(fmt::format(
        "--write-folds takes the folds of one source, but there are {}; name one with --collection",
        tables.size()));
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FoldTable& table : tables) {
    const std::string split = split_family_warning(table);
    if (!split.empty()) spdlog::warn("{}", split);
    if (json)
      list.push_back(to_json(table));
    else
      print("{}\n", fold_table_text(table));
  }
  if (json) print_json(list);
  if (!arguments.output.empty())
    write_file_atomically(arguments.output, fold_file_text(tables.front()));
}

}  // namespace tpudist
