#include "train/weights/imported_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/metis_segments.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/manifest.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/checkpoints/weights_file.hpp"
#include "results/records/run_folder.hpp"
#include "train/loop/run_checkpoints.hpp"
#include "train/loop/training_state.hpp"
#include "train/scoring/trained_run.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

bool has_shards(const Experiment& experiment) {
  const auto collections = std::filesystem::exists(experiment.data.shards)
                               ? converted_collections(experiment.data.shards)
                               : std::vector<Collection>{};
  return std::ranges::all_of(parts_of(experiment.data.collection), [&](const Collection& part) {
    return std::ranges::find(collections, part.name, &Collection::name) != collections.end();
  });
}

void require_a_file_for_each_member(const Experiment& experiment, std::size_t files) {
  if (files == static_cast<std::size_t>(experiment.ensemble.members)) return;
  throw ConfigError(
      fmt::format("ensemble.members is {}, but {} {} given; give one file for each member, or "
                  "ensemble.members={}",
                  experiment.ensemble.members, files, files == 1 ? "file is" : "files are", files));
}

}  // namespace

ImportedRun import_run(const Experiment& experiment,
                       const std::vector<std::filesystem::path>& files,
                       const std::filesystem::path& run, JobContext& context) {
  require_a_file_for_each_member(experiment, files.size());
  RunClaim claim(run, /*resume=*/false);
  const Network network = make_network(experiment, -1, context.pool);
  const ParameterTable& table = network.parameters();
  std::optional<Dataset> data;
  FoldTable folds;
  if (has_shards(experiment)) {
    refuse_scored_graphs(experiment.training_data(), experiment.data);
    data.emplace(Dataset::open(experiment.training_data(), context.pool));
    folds = training_folds(experiment.ensemble, data->options());
  }
  SegmentTable segments;
  if (data) segments = {experiment.ensemble.members, cut_graphs(*data)};
  TrainingState state(experiment, network, std::move(segments));
  state.initialise(experiment, network);
  ImportedRun imported;
  AlignedFloats& weights = state.change_weights().flat;
  const auto length = static_cast<std::size_t>(table.length());
  for (std::size_t m = 0; m < files.size(); ++m) {
    const auto flat = std::span<float>(weights).subspan(m * length, length);
    for (std::string& name : read_weights(files[m], table, flat)) {
      if (std::ranges::find(imported.absent_statistics, name) == imported.absent_statistics.end())
        imported.absent_statistics.push_back(std::move(name));
    }
  }
  Checkpoint checkpoint;
  state.copy_to(checkpoint, experiment, data ? data->selection_hash() : 0);
  if (data) {
    checkpoint.fold_hash = training_folds_hash(folds, *data);
    checkpoint.segment_hash = segment_hash(*data);
    checkpoint.metis_hash = metis_hash(experiment.data.reduction);
  }
  const RunFolder folder(run);
  claim.begin(experiment.resolved_yaml);
  record_folds(folder, folds);
  save_checkpoint(checkpoint_path(folder.checkpoints(), 0), checkpoint, table);
  imported.parameter_hash =
      parameter_hash(weights, experiment.ensemble.members, network.parameters());
  imported.can_resume = data.has_value();
  return imported;
}

}  // namespace tpudist
