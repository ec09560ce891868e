#include "train/scoring/trained_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/fold_table.hpp"
#include "data/loading/metis_segments.hpp"
#include "data/schema/model_family.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/run_folder.hpp"
#include "results/records/settings.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/scoring/prediction_records.hpp"

namespace tpudist {
namespace {

// Replaces a config.yaml that cannot be read with the configuration of the checkpoint, and keeps
// the old file beside the new one. Only warns if the folder is not writable, e.g. another user's.
void mend_config(const RunFolder& folder, const std::string& yaml) {
  try {
    std::error_code error;
    if (std::filesystem::exists(folder.config(), error)) {
      write_file_atomically(folder.config().string() + ".damaged", read_text_file(folder.config()));
    }
    write_file_atomically(folder.config(), yaml);
    spdlog::warn("{}: written again from the checkpoint", folder.config().string());
  } catch (const Error& error) {
    spdlog::warn("cannot mend {}: {}", folder.config().string(), error.what());
  }
}

// The experiment of config.yaml, or that of the checkpoint if config.yaml cannot be read.
Experiment experiment_of(const RunFolder& folder, const CheckpointSummary& checkpoint) {
  try {
    ConfigDocument document = ConfigDocument::load(folder.config());
    return read_experiment(document);
  } catch (const Error& error) {
    spdlog::warn("{}; taking the configuration in the checkpoint instead", error.what());
  }
  ConfigDocument document =
      ConfigDocument::parse(checkpoint.config, "the checkpoint's configuration");
  Experiment experiment = read_experiment(document);
  mend_config(folder, checkpoint.config);
  return experiment;
}

}  // namespace

TrainedOn trained_on(const TrainedRun& run, const std::filesystem::path& shards) {
  const EnsembleConfig& ensemble = run.experiment.ensemble;
  const std::filesystem::path recorded = run.path / kSeenGraphsFile;
  TrainedOn trained;
  if (std::filesystem::exists(recorded)) trained = read_seen_graphs(recorded).trained_on;
  if (!trained.empty()) return trained;
  DatasetOptions options = run.experiment.training_data();
  if (!std::filesystem::exists(options.shards)) options.shards = shards;
  const std::vector<GraphEntry> graphs = select_graphs(options);
  if (hash_selection(options, graphs) != run.selection_hash)
    throw DataError(fmt::format("{} has other training graphs now", options.shards.string()));
  std::vector<int> folds(graphs.size(), -2);  // of none
  if (ensemble.holds_out()) folds = recorded_folds(run, graphs);
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    std::vector<bool> members;
    for (int m = 0; m < ensemble.members; ++m)
      members.push_back(ensemble.held_out_fold(m) != folds[g]);
    trained.add(graphs[g], members);
  }
  return trained;
}

std::vector<int> recorded_folds(const TrainedRun& run, std::span<const GraphEntry> graphs) {
  std::vector<FoldedGraph> folded;
  for (const GraphEntry& graph : graphs)
    folded.push_back({graph.name, model_family(graph.name), graph.nodes, 0});
  return FoldFile::read(RunFolder(run.path).folds())
      .folds_of(folded, run.experiment.ensemble.folds);
}

std::string opened_at(const TrainedRun& run) {
  return fmt::format("step {}{}", run.step, run.averaged ? ", averaged weights" : "");
}

TrainedRun open_run(const std::filesystem::path& path, std::string_view which, Weights weights) {
  const RunFolder folder = RunFolder::open(path);
  const CheckpointFile file = find_checkpoint(folder.checkpoints(), which);
  const CheckpointSummary& summary = file.summary();
  TrainedRun run;
  run.path = path;
  run.experiment = experiment_of(folder, summary);
  require_same_settings(summary.entries(), run.experiment.entries, file.path().string(),
                        "the run's config.yaml must be that of its checkpoints");
  ThreadPool pool(1);
  const Network network = make_network(run.experiment, -1, pool);
  const Checkpoint checkpoint = file.load(network.parameters(), /*segment_scores=*/false);
  run.step = checkpoint.step;
  run.selection_hash = checkpoint.selection_hash;
  run.fold_hash = checkpoint.fold_hash;
  run.metis_hash = checkpoint.metis_hash;
  run.init_hash = checkpoint.init_hash;
  run.losses = loss_ends(checkpoint.losses);
  run.flat.assign(checkpoint.parameters.begin(), checkpoint.parameters.end());
  if (weights == Weights::averaged &&
      std::ranges::any_of(checkpoint.average_points, [](auto points) { return points > 0; })) {
    run.flat = averaged_weights(run.flat, checkpoint.average, checkpoint.average_points);
    run.averaged = true;
  }
  run.parameter_hash = parameter_hash(run.flat, checkpoint.members, network.parameters());
  for (int failed : checkpoint.failed) run.use.push_back(failed == 0);
  if (std::none_of(run.use.begin(), run.use.end(), [](bool use) { return use; })) {
    throw ConfigError(fmt::format(
        "{}: every member of the run failed (its loss was not finite); train again with a "
        "smaller optimizer.lr",
        path.string()));
  }
  return run;
}

void require_other_trainings(const std::vector<const TrainedRun*>& runs, JobContext& context) {
  struct Seen {
    const TrainedRun* run = nullptr;
    std::string name;
  };
  std::map<std::uint64_t, Seen> weights;  // by the bits of the parameters
  std::map<std::pair<std::uint64_t, std::uint64_t>, Seen> trainings;  // and by recipe
  std::set<std::pair<const TrainedRun*, const TrainedRun*>> told;     // pairs already warned of
  for (const TrainedRun* run : runs) {
    const std::uint64_t recipe = variant_hash(run->experiment.entries);
    const std::size_t length = run->flat.size() / run->use.size();
    for (std::size_t m = 0; m < run->use.size(); ++m) {
      if (!run->use[m]) continue;
      const std::uint64_t bits =
          hash64(std::as_bytes(std::span(run->flat).subspan(m * length, length)));
      const Seen own{run, to_text({run->path.string(),
                                   run->experiment.ensemble.number_of(static_cast<int>(m))})};
      const Seen& same = trainings.try_emplace({bits, recipe}, own).first->second;
      if (same.run != run) {
        throw ConfigError(
            fmt::format("{} has the weights of {}: it is one training given twice; give it once",
                        own.name, same.name));
      }
      const auto [first, fresh] = weights.try_emplace(bits, own);
      if (!fresh && context.world.rank() == 0 && told.emplace(first->second.run, run).second)
        spdlog::warn("{} has the weights of {}, and counts again", own.name, first->second.name);
    }
  }
}

void warn_of_other_metis(const TrainedRun& run, JobContext& context) {
  if (context.world.rank() != 0 || !run.metis_hash) return;
  if (run.metis_hash != metis_hash(run.experiment.data.reduction))
    spdlog::warn(
        "{}: the METIS of its training cut graphs into other segments than this one, so its scores "
        "are others than then",
        run.path.string());
}

GraphReduction scored_reduction(const std::vector<const TrainedRun*>& runs) {
  std::optional<GraphReduction> first;
  bool config_edges = false;
  for (const TrainedRun* run : runs) {
    GraphReduction own = run->experiment.data.reduction.scored();
    config_edges |= std::exchange(own.config_edges, false);
    if (!first) first = own;
    if (own != *first)
      throw ConfigError(fmt::format(
          "{}: its graphs are reduced otherwise (data.reduce: {}) than those of {} ({}); score it "
          "by itself: `tpudist ensemble` combines files of `tpudist predict --scores FILE`",
          run->path.string(), to_text(own), runs.front()->path.string(), to_text(*first)));
  }
  first->config_edges = config_edges;
  return *first;
}

MemberWeights add_runs(ScoringSession& session, const std::vector<const TrainedRun*>& runs) {
  MemberWeights weights;
  for (const TrainedRun* run : runs) {
    session.add(run->experiment, runs.size() > 1 ? run->path.string() : std::string());
    weights.push_back(run->flat);
  }
  return weights;
}

std::vector<AgreedValue> values_to_agree(const TrainedRun& run) {
  const std::string path = run.path.string();
  Hasher hasher;
  hasher.update(std::span<const float>(run.flat));
  for (const bool use : run.use) hasher.update(static_cast<int>(use));
  std::vector<AgreedValue> values{{path + ": step", std::to_string(run.step)},
                                  {path + ": parameters", to_hex(hasher.digest())}};
  for (const AgreedValue& value : values_to_agree(run.experiment)) {
    values.push_back({fmt::format("{}: {}", path, value.name), value.value});
  }
  return values;
}

}  // namespace tpudist
