#include "launch/sweep/sweep_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "data/shards/manifest.hpp"
#include "train/scoring/trained_run.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

std::vector<GraphEntry> entries_of(const FrozenData& data) {
  std::vector<GraphEntry> entries;
  for (const FrozenData::Graph& graph : data.graphs) {
    GraphEntry& entry = entries.emplace_back();
    entry.name = graph.name;
    entry.split = graph.split;
    entry.source.hash = graph.source_hash;
    entry.configs = graph.configs;
  }
  return entries;
}

std::uint64_t selection_of(const FrozenData& data, const DatasetOptions& options) {
  const std::vector<GraphEntry> all = entries_of(data);
  std::vector<GraphEntry> graphs =
      filter_graphs(all, options.split, options.include, options.exclude);
  if (options.second) {
    const SecondSplit& second = *options.second;
    std::ranges::move(filter_graphs(all, second.name, second.include, second.exclude),
                      std::back_inserter(graphs));
  }
  return hash_selection(options, graphs);
}

std::string some_of(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return fmt::format("{} {} ({})", names.size(), what, first_of(names, 3));
}

// "valid: 1 added (g)", for the graphs that the experiment takes; empty if nothing changed.
std::string change_of(const std::vector<GraphEntry>& then, const std::vector<GraphEntry>& now,
                      const std::string& split) {
  std::map<std::string, std::pair<const GraphEntry*, const GraphEntry*>> graphs;
  for (const GraphEntry& graph : then) graphs[graph.name].first = &graph;
  for (const GraphEntry& graph : now) graphs[graph.name].second = &graph;
  std::vector<std::string> added, removed, changed;
  for (const auto& [name, both] : graphs) {
    const auto& [old, found] = both;
    if (!old)
      added.push_back(name);
    else if (!found)
      removed.push_back(name);
    else if (old->source.hash != found->source.hash || old->configs != found->configs)
      changed.push_back(name);
  }
  std::vector<std::string> pieces{some_of("added", added), some_of("removed", removed),
                                  some_of("changed", changed)};
  std::erase(pieces, "");
  return pieces.empty() ? std::string() : fmt::format("{}: {}", split, join(pieces, ", "));
}

// Hash of the fold of each training graph. Folds depend on a fold file and on a sibling collection
// in the shards.
std::string folds_hash(const Experiment& experiment, Inputs& known) {
  std::string key;  // the settings that decide folds
  for (const ConfigEntry& entry : experiment.entries)
    if (entry.key.starts_with("data.") || entry.key.starts_with("ensemble.fold"))
      key += entry.key + "=" + entry.value + " ";
  std::string& hash = known[key];
  if (!hash.empty()) return hash;
  const DatasetOptions options = experiment.training_data();
  std::vector<std::string> names;
  for (const GraphEntry& graph : select_graphs(options)) names.push_back(graph.name);
  const FoldTable folds = training_folds(experiment.ensemble, options);
  return hash = to_hex(hash_of_folds(folds, std::move(names)));
}

std::string weights_hash(const std::filesystem::path& from, Inputs& known) {
  std::string& hash = known[from.string()];
  if (hash.empty())
    hash = to_hex(std::filesystem::is_directory(from) ? open_run(from).parameter_hash
                                                      : hash_file(from));
  return hash;
}

}  // namespace

FrozenData read_data(const Experiment& experiment, bool begun) {
  const DataConfig& config = experiment.data;
  require_shards(
      config.shards, config.collection,
      fmt::format("`tpudist convert NPZ {}` makes them{}", shell_word(config.shards.string()),
                  begun ? ""
                        : ", or expand the sweep again with other shards "
                          "(TPUDIST_DATA, data.shards)"));
  FrozenData data{config.shards.string(), config.collection.name, {}};
  for (const GraphEntry& graph : list_graphs(config.shards, config.collection)) {
    if (graph.split == "test") continue;
    data.graphs.push_back({graph.name, graph.split, graph.source.hash, graph.configs});
  }
  return data;
}

const FrozenData* find_data(const std::vector<FrozenData>& data, const Experiment& experiment) {
  const auto at = std::ranges::find_if(data, [&](const FrozenData& known) {
    return known.shards == experiment.data.shards.string() &&
           known.collection == experiment.data.collection.name;
  });
  return at == data.end() ? nullptr : &*at;
}

const FrozenData* add_data(std::vector<FrozenData>& data, const Experiment& experiment) {
  if (const FrozenData* known = find_data(data, experiment)) return known;
  try {
    return &data.emplace_back(read_data(experiment));
  } catch (const Error& error) {  // no run begins without them: SweepFolder::data_fault
    spdlog::debug("{}", error.what());
    return nullptr;
  }
}

std::vector<GraphEntry> chosen_graphs(const FrozenData& data, const Experiment& experiment,
                                      const std::string& split) {
  const DatasetOptions options = experiment.data.evaluation(split);
  return filter_graphs(entries_of(data), split, options.include, options.exclude);
}

void set_data_hashes(SweepRun& run, const FrozenData& data, const Experiment& experiment,
                     Inputs& known) {
  const std::filesystem::path& from = experiment.train.init_from;
  Inputs inputs{{"data.train", to_hex(selection_of(data, experiment.training_data()))},
                {"data.valid", to_hex(selection_of(data, experiment.data.evaluation("valid")))}};
  try {
    if (experiment.ensemble.holds_out()) inputs["ensemble.folds"] = folds_hash(experiment, known);
    if (!from.empty()) inputs["train.init_from"] = weights_hash(from, known);
    run.inputs = std::move(inputs);
  } catch (const Error&) {  // the run that needs them says what is wrong
  }
}

ScoredOn scored_on(const Experiment& experiment, bool out_of_fold, const FrozenData* data,
                   Inputs& known) {
  const TrainConfig& train = experiment.train;
  ScoredOn scored{experiment.data.collection.name, 0, {}};
  if (out_of_fold)
    scored.rows = experiment.predictions.most_rows;
  else if (train.last_evaluation != LastEvaluation::all)
    scored.rows = train.last_evaluation == LastEvaluation::none ? -1 : train.evaluate_rows;
  std::vector<std::string> splits{out_of_fold ? "train" : "valid"};
  if (out_of_fold && experiment.ensemble.trains_on_valid) splits.push_back("valid");
  for (const std::string& split : splits) {
    const DatasetOptions options = experiment.data.evaluation(split);
    scored.graphs += data ? to_hex(selection_of(*data, options))
                          : fmt::format("{} {} [{}] [{}]", options.shards.string(), split,
                                        join(options.include, " "), join(options.exclude, " "));
  }
  if (out_of_fold && data && experiment.ensemble.holds_out())
    scored.graphs += folds_hash(experiment, known);
  return scored;
}

std::string difference_of(const ScoredOn& a, const ScoredOn& b) {
  if (a.collection != b.collection)
    return fmt::format("data.collection is {} and {}", a.collection, b.collection);
  if (a.rows != b.rows) return "the numbers of rows that are scored differ";
  return "the scored graphs differ, or the folds in which they lie";
}

void require_same_data(const SweepRun& run, SweepRun& now, const Experiment& experiment,
                       const FrozenData* then, bool begun) {
  const FrozenData found = read_data(experiment, begun);
  Inputs known;
  set_data_hashes(now, found, experiment, known);
  const std::string input = changed_input(run.inputs, now.inputs);
  if (input.empty()) return;
  std::vector<std::string> changes;
  for (const char* split : {"train", "valid"}) {
    if (!then) break;
    changes.push_back(change_of(chosen_graphs(*then, experiment, split),
                                chosen_graphs(found, experiment, split), split));
  }
  std::string what = "graphs in " + experiment.data.shards.string();
  if (input == "train.init_from") what = "weights in " + experiment.train.init_from.string();
  if (input == "ensemble.folds")
    what =
        fmt::format("folds ({}) of the {}",
                    training_folds(experiment.ensemble, experiment.training_data()).origin, what);
  std::erase(changes, "");
  throw DataError(fmt::format(
      "{} does not start: the {} are not those that the sweep was expanded for{}{}; put "
      "them back, or expand the sweep again into another folder (--dir)",
      name_of(run), what, changes.empty() ? "" : ": ", join(changes, "; ")));
}

}  // namespace tpudist
