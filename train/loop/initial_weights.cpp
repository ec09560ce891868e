#include "train/loop/initial_weights.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "core/error.hpp"
#include "core/text.hpp"
#include "inference/trained_run.hpp"
#include "train/state/weights_file.hpp"

namespace tpudist {
namespace {

// The index in `run` of the member that the one of this number takes its weights from.
std::size_t source_of(const TrainedRun& run, int number) {
  const EnsembleConfig& ensemble = run.experiment.ensemble;
  const int index = ensemble.members == 1 ? 0 : number - ensemble.first_member;
  if (index < 0 || index >= ensemble.members || !run.use[static_cast<std::size_t>(index)]) {
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

std::string list_of(const std::vector<std::string>& names) {
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace

std::vector<std::string> take_initial_weights(const Experiment& experiment, const Network& network,
                                              TrainingState& state, JobContext& context) {
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
  } else {
    source = open_weights(from);
  }
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
  return {fmt::format("weights are those of {}{}: {} tensors", from.string(),
                      run ? " at " + opened_at(*run) : "", names.taken.size()),
          "new in this run: " + list_of(names.fresh), "not used of it: " + list_of(names.unused)};
}

}  // namespace tpudist
