#include "train/inference.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/log.hpp"
#include "train/checkpoint.hpp"
#include "train/run_folder.hpp"

namespace tpudist {
namespace {

Network make_network(const Experiment& experiment, int device, ThreadPool& pool) {
  return Network(experiment.network, experiment.data.collection.config_features(), device, pool);
}

Checkpoint newest_checkpoint(const RunFolder& folder, const ParameterTable& table) {
  for (const std::filesystem::path& path : list_checkpoints(folder.checkpoints())) {
    try {
      return load_checkpoint(path, table);
    } catch (const DataError& error) {
      spdlog::warn("{}; trying the checkpoint before it", error.what());
    }
  }
  throw ConfigError(fmt::format("{}: the run has no readable checkpoint yet; train it first",
                                folder.path().string()));
}

// The members of several runs side by side, graph by graph.
class CollectionScores {
 public:
  CollectionScores(const TrainedRun& run, const ScoreRequest& request, ThreadPool& pool)
      : dataset_(Dataset::open(options(run, request), pool)) {}

  void add(const TrainedRun& run, const ScoreRequest& request, JobContext& context) {
    if (!predictions_.empty()) require_same_graphs(run, request);
    const Network network = make_network(run.experiment, context.place.device, context.pool);
    const UnitBuilder units(dataset_, network, run.experiment.plan);
    std::vector<GraphPrediction> predictions =
        score_dataset(network, run.flat, static_cast<int>(run.use.size()), dataset_, units,
                      {run.experiment.evaluate_block, 0}, context);
    use_.insert(use_.end(), run.use.begin(), run.use.end());
    if (predictions_.empty()) {
      predictions_ = std::move(predictions);
      return;
    }
    for (std::size_t g = 0; g < predictions.size(); ++g) {
      for (auto& scores : predictions[g].scores)
        predictions_[g].scores.push_back(std::move(scores));
    }
  }

  CollectionResult result(ThreadPool& pool) const {
    CollectionResult result;
    result.collection = dataset_.options().collection.name;
    for (const GraphPrediction& prediction : predictions_) {
      result.graphs.push_back(dataset_.graph(prediction.graph).name);
      result.mean.push_back(mean_scores(prediction, use_));
    }
    if (dataset_.options().split != "test") {
      result.evaluation = evaluate_predictions(predictions_, dataset_, use_, pool);
    }
    return result;
  }

 private:
  static DatasetOptions options(const TrainedRun& run, const ScoreRequest& request) {
    DatasetOptions options = run.experiment.data.evaluation(request.split);
    if (!request.shards.empty()) options.shards = request.shards;
    return options;
  }

  void require_same_graphs(const TrainedRun& run, const ScoreRequest& request) const {
    const DatasetOptions mine = dataset_.options(), other = options(run, request);
    if (mine.shards != other.shards || mine.include != other.include ||
        mine.exclude != other.exclude) {
      throw ConfigError(fmt::format(
          "{}: its {} split is not the one of the runs before it (data.shards, include or "
          "exclude differ); give --data, or combine runs of equal selections",
          run.path.string(), request.split));
    }
  }

  Dataset dataset_;
  std::vector<GraphPrediction> predictions_;
  std::vector<bool> use_;
};

}  // namespace

TrainedRun open_run(const std::filesystem::path& path) {
  const RunFolder folder = RunFolder::open(path);
  TrainedRun run;
  run.path = path;
  ConfigDocument document = ConfigDocument::load(folder.config());
  run.experiment = read_experiment(document);
  ThreadPool pool(1);
  const Network network = make_network(run.experiment, -1, pool);
  const Checkpoint checkpoint = newest_checkpoint(folder, network.parameters());
  run.step = checkpoint.step;
  run.flat.assign(checkpoint.parameters.begin(), checkpoint.parameters.end());
  for (int failed : checkpoint.failed) run.use.push_back(failed == 0);
  if (std::none_of(run.use.begin(), run.use.end(), [](bool use) { return use; })) {
    throw ConfigError(fmt::format(
        "{}: every member of the run failed (its loss was not finite); train again with a "
        "smaller optimizer.lr",
        path.string()));
  }
  return run;
}

std::vector<CollectionResult> score_runs(const std::vector<TrainedRun>& runs,
                                         const ScoreRequest& request, JobContext& context) {
  std::vector<CollectionResult> results;
  std::vector<std::string> done;
  for (const TrainedRun& first : runs) {
    const std::string& collection = first.experiment.data.collection.name;
    if (std::find(done.begin(), done.end(), collection) != done.end()) continue;
    done.push_back(collection);
    CollectionScores scores(first, request, context.pool);
    for (const TrainedRun& run : runs) {
      if (run.experiment.data.collection.name == collection) scores.add(run, request, context);
    }
    results.push_back(scores.result(context.pool));
  }
  return results;
}

Submission make_submission(const std::vector<CollectionResult>& results) {
  Submission submission;
  for (const CollectionResult& result : results) {
    const Collection collection = Collection::parse(result.collection);
    for (std::size_t g = 0; g < result.graphs.size(); ++g) {
      submission.add(collection, result.graphs[g], result.mean[g]);
    }
  }
  return submission;
}

}  // namespace tpudist
