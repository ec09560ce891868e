#include "train/loop/training_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "data/loading/dataset.hpp"
#include "dist/health/agreement.hpp"
#include "results/checkpoints/weights_file.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist {
namespace {

// The index of the member of `run` whose weights the member with this number takes.
std::size_t source_of(const TrainedRun& run, int number) {
  const EnsembleConfig& ensemble = run.experiment.ensemble;
  const int index = ensemble.members == 1 ? 0 : number - ensemble.first_member;
  if (index < 0 || index >= ensemble.members || !run.use[index]) {
    throw ConfigError(fmt::format(
        "train.init_from: {} {}; `tpudist weights export` writes a file of one member, which all "
        "take",
        run.path.string(),
        index < 0 || index >= ensemble.members
            ? fmt::format("has members {} to {}, none for member {}", ensemble.first_member,
                          ensemble.first_member + ensemble.members - 1, number)
            : fmt::format("lost member {}", number)));
  }
  return static_cast<std::size_t>(index);
}

// Weights that were trained on a graph know the graph: their score says nothing about unknown
// graphs. Members are scored on the graphs of their fold, and on the validation split unless they
// train on that split.
void refuse_known_graphs(const TrainingSetup& setup, const TrainedRun& run,
                         const TrainedOn& trained) {
  const EnsembleConfig& own = setup.experiment.ensemble;
  std::vector<GraphEntry> folded, valid;
  if (own.holds_out()) folded = select_graphs(setup.data.options());
  if (!own.trains_on_valid) {
    const DatasetOptions options = setup.experiment.data.evaluation("valid");
    valid = filter_graphs(list_graphs(options.shards, options.collection, "valid"), "valid",
                          options.include, options.exclude);
  }
  for (int m = 0; m < own.members; ++m) {
    const std::size_t source = source_of(run, own.number_of(m));
    const auto require_unknown = [&](const GraphEntry& graph, const std::string& remedy) {
      if (!trained.knows(graph, source)) return;
      throw ConfigError(fmt::format(
          "train.init_from: {} was trained on {}, on which member {} is to be scored as on a graph "
          "that it never saw: {}",
          run.path.string(), graph.name, own.number_of(m), remedy));
    };
    for (const GraphEntry& graph : folded) {
      if (setup.folds.find(graph.name)->fold == own.held_out_fold(m))
        require_unknown(graph, "take a run of the same folds, or ensemble.folds=none");
    }
    for (const GraphEntry& graph : valid)
      require_unknown(graph, fmt::format("leave it out by data.exclude.valid=['{}']", graph.name));
  }
}

// Members with equal weights, slates and graphs stay equal, unless dropout differs.
void refuse_equal_members(const Experiment& experiment) {
  const EnsembleConfig& ensemble = experiment.ensemble;
  if (ensemble.members == 1 || !shares_slates(experiment) || ensemble.holds_out() ||
      experiment.network.drops())
    return;
  throw ConfigError(fmt::format(
      "train.init_from: all {} members would take the same weights and stay equal: let them differ "
      "by ensemble.vary=[order], batch.order=per_member or folds, start some tensors anew "
      "(train.init_fresh), or give ensemble.members=1",
      ensemble.members));
}

std::string list_of(const std::vector<std::string>& names) {
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace

std::vector<std::string> take_initial_weights(const TrainingSetup& setup, TrainingState& state,
                                              JobContext& context) {
  const Experiment& experiment = setup.experiment;
  const Network& network = setup.network;
  const std::filesystem::path& from = experiment.train.init_from;
  if (!std::filesystem::exists(from))
    throw ConfigError(fmt::format("train.init_from: there is no {}", from.string()));
  const ParameterTable& table = network.parameters();
  const auto length = static_cast<std::size_t>(table.length());
  AlignedFloats& flat = state.change_weights().flat;
  std::optional<TrainedRun> run;
  std::unique_ptr<const Network> of_run;
  WeightsSource source;
  if (std::filesystem::is_directory(from)) {
    run = open_run(from);
    of_run.reset(new Network(make_network(run->experiment, -1, context.pool)));
    TrainedOn trained;
    try {
      trained = trained_on(*run, setup.data.options().shards);
    } catch (const Error& error) {
      if (context.world.rank() == 0)
        spdlog::warn("train.init_from: not known on which graphs {} was trained: {}", from.string(),
                     error.what());
    }
    refuse_known_graphs(setup, *run, trained);
    for (const auto& [key, graph] : trained) {
      std::vector<bool> own;
      for (int m = 0; m < experiment.ensemble.members; ++m)
        own.push_back(graph.members.at(source_of(*run, experiment.ensemble.number_of(m))));
      if (std::ranges::find(own, true) != own.end()) state.trained_on[key] = {graph.name, own};
    }
  } else {
    source = open_weights(from);
  }
  state.init_hash = run ? run->parameter_hash : hash_file(from);
  TransferredWeights names;
  for (int m = 0; m < experiment.ensemble.members; ++m) {
    if (run) {
      const ParameterTable& its = of_run->parameters();
      const auto its_length = static_cast<std::size_t>(its.length());
      const std::size_t member = source_of(*run, experiment.ensemble.number_of(m));
      source = weights_of(from.string(), its,
                          std::span(run->flat).subspan(member * its_length, its_length));
    }
    names = transfer_weights(source, table, experiment.train.init_fresh,
                             std::span(flat).subspan(static_cast<std::size_t>(m) * length, length));
  }
  if (names.taken.empty()) {
    throw ConfigError(
        "train.init_fresh: matches every tensor of the network, so that none is taken from "
        "train.init_from: leave out both");
  }
  const bool one_source = !run || run->experiment.ensemble.members == 1;
  if (one_source && names.fresh.empty()) refuse_equal_members(experiment);
  return {
      fmt::format("weights are those of {}{}: {}", from.string(),
                  run ? " at " + opened_at(*run) : "", counted(std::ssize(names.taken), "tensor")),
      "new in this run: " + list_of(names.fresh), "not used of it: " + list_of(names.unused)};
}

void begin_anew(const TrainingSetup& setup, TrainingState& state, JobContext& context) {
  state.initialise(setup.experiment, setup.network);
  run_on_all_ranks(context.world, [&] {
    if (!setup.experiment.train.init_from.empty()) {
      for (const std::string& line : take_initial_weights(setup, state, context))
        if (context.world.rank() == 0) spdlog::info("{}", line);
    }
    if (setup.network.takes_statistics())
      state.set_statistics(setup.network, member_statistics(setup));
  });
}

}  // namespace tpudist
