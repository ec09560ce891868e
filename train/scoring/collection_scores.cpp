#include "train/scoring/collection_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/manifest.hpp"
#include "results/records/predictions_file.hpp"
#include "results/scores/table_intervals.hpp"
#include "train/scoring/in_memory_predictions.hpp"

namespace tpudist {
namespace {

DatasetOptions scored_data(const TrainedRun& run, const ScoreRequest& request) {
  DatasetOptions options = run.experiment.data.evaluation(request.split);
  if (!request.shards.empty()) options.shards = request.shards;
  return options;
}

void require_same_selection(const Dataset& dataset, const TrainedRun& run,
                            const ScoreRequest& request) {
  const DatasetOptions mine = dataset.options(), other = scored_data(run, request);
  if (mine.shards != other.shards || mine.include != other.include ||
      mine.exclude != other.exclude) {
    throw ConfigError(fmt::format(
        "{}: its {} split is not the one of the runs before it (data.shards, include or "
        "exclude differ); give --data, or combine runs of equal selections",
        run.path.string(), request.split));
  }
}

// Which members never trained on each validation graph, as rank 0 reads from the run folders; empty
// if no member trains on the scored split. Collective.
ScoringMembers scoring_members(const Dataset& dataset, const std::vector<const TrainedRun*>& runs,
                               const std::optional<PredictionsHeader>& header, int members,
                               Communicator& world) {
  const bool trained_on = std::ranges::any_of(
      runs, [](const TrainedRun* run) { return run->experiment.ensemble.trains_on_valid; });
  if (!trained_on || dataset.options().split != "valid") return {};
  const auto graphs = static_cast<std::size_t>(dataset.size()),
             count = static_cast<std::size_t>(members);
  std::vector<std::int64_t> flags(graphs * count);
  for (std::size_t i = 0; header && i < flags.size(); ++i)
    flags[i] = header->graphs[i / count].held_out[i % count] ? 1 : 0;
  world.broadcast(std::span(flags), 0);
  ScoringMembers by(graphs, std::vector<bool>(count));
  for (std::size_t i = 0; i < flags.size(); ++i) by[i / count][i % count] = flags[i] > 0;
  return by;
}

// Judges the members and combines those that are left.
CollectionResult combined_result(const InMemoryPredictions& scored, const ScoreRequest& request) {
  CollectionResult result;
  result.collection = scored.header().collection;
  result.judgement = judge(scored, request.judgement);
  const std::vector<double> weights(result.judgement.used.begin(), result.judgement.used.end());
  for (const PredictionEntry& graph : scored.header().graphs) result.graphs.push_back(graph.name);
  for (const ScoresByMember& prediction : scored.predictions()) {
    if (request.means)
      result.mean.push_back(
          combine_scored(prediction.scores, request.judgement.combination, weights));
  }
  if (scored.evaluation()) result.evaluation = judged(*scored.evaluation(), result.judgement);
  return result;
}

// `runs`: at least one, all of one collection. The runs of an ensemble that was split are sorted by
// their members, so that the result does not depend on the order in which they are given.
CollectionResult score_collection(std::vector<const TrainedRun*> runs, const ScoreRequest& request,
                                  JobContext& context) {
  std::ranges::stable_sort(
      runs, {}, [](const TrainedRun* run) { return run->experiment.ensemble.first_member; });
  require_other_trainings(runs, context);
  DatasetOptions options = scored_data(*runs.front(), request);
  options.reduction = scored_reduction(runs);
  require_shards(options.shards, options.collection,
                 "give the folder of the shards with --data FOLDER");
  ScoringSession session(options, context);
  const Dataset& dataset = session.data();
  for (const TrainedRun* run : runs) require_same_selection(dataset, *run, request);
  const MemberWeights weights = add_runs(session, runs);
  const bool root = context.world.rank() == 0;
  std::optional<PredictionsHeader> header;  // only on rank 0, like the next variables
  std::optional<PredictionsWriter> file;
  run_on_first_rank(context.world, [&] {
    header = prediction_file_header(dataset, runs);
    header->combination = request.judgement.combination;
    if (!request.scores.empty()) file.emplace(request.scores, *header);
  });
  session.limit(scoring_members(dataset, runs, header, session.members(), context.world));
  context.enter("scoring");
  const auto score = [&](int draw) {
    CollectionResult result;
    std::optional<InMemoryPredictions> scored;
    run_on_first_rank(context.world, [&] { scored.emplace(session, *header); });
    const auto take = [&](std::vector<ScoresByMember> graphs) {
      run_on_first_rank(context.world, [&] {
        const int first = graphs.front().graph, count = static_cast<int>(graphs.size());
        scored->add(std::move(graphs), context.pool);
        for (int g = first; file && g < first + count; ++g) file->add(g, scored->read(g));
      });
    };
    context.progress.start(
        draw == 0 ? "score" : fmt::format("score, draw {} of {}", draw + 1, request.draws),
        session.scores(0), "scores");
    session.score(weights, 0, take, {}, static_cast<std::uint64_t>(draw));
    context.progress.finish();
    run_on_first_rank(context.world, [&] {
      if (file) file->finish();
      result = combined_result(*scored, request);
    });
    file.reset();  // holds the first draw
    return result;
  };
  CollectionResult result = score(0);
  for (int draw = 1; draw < request.draws; ++draw) {
    CollectionResult other = score(draw);
    if (root) result.more_draws.push_back(*std::move(other.evaluation));
  }
  return result;
}

}  // namespace

std::vector<CollectionResult> score_runs(const std::vector<TrainedRun>& runs,
                                         const ScoreRequest& request, JobContext& context) {
  std::vector<CollectionResult> results;
  std::map<std::string, std::vector<const TrainedRun*>> by_collection;
  std::vector<std::string> collections;  // in the order given
  std::vector<std::pair<std::string, Collection>> scored;
  for (const TrainedRun& run : runs)
    scored.emplace_back(run.path.string(), run.experiment.data.collection);
  refuse_overlaps(scored);
  for (const TrainedRun& run : runs) {
    warn_of_other_metis(run, context);
    const std::string& collection = run.experiment.data.collection.name;
    if (by_collection[collection].empty()) collections.push_back(collection);
    by_collection[collection].push_back(&run);
  }
  for (const std::string& collection : collections) {
    results.push_back(score_collection(by_collection[collection], request, context));
  }
  return results;
}

std::string final_score_text(const std::vector<CollectionResult>& results) {
  std::vector<CollectionScore> scores;
  std::vector<TableJudgement> tables;
  std::size_t judged = 0;  // results
  for (const CollectionResult& result : results) {
    if (!result.evaluation) continue;
    ++judged;
    const Evaluation& evaluation = *result.evaluation;
    const auto parts = means_of_collections(evaluation.ensemble, evaluation.is_tile);
    if (!result.judgement.tables.empty()) tables.push_back(result.judgement.tables.front());
    if (parts.empty()) {
      scores.push_back({result.collection, evaluation.ensemble_mean()});
      continue;
    }
    for (const GraphMetrics& part : parts)
      scores.push_back({part.name, primary_score(part, evaluation.is_tile)});
  }
  if (scores.size() < 2) return {};
  // Intervals are printed only if they are of exactly the printed mean.
  return final_score_text(scores) +
         (tables.size() == judged ? final_interval_text(tables) : std::string());
}

Submission make_submission(const std::vector<CollectionResult>& results) {
  Submission submission;
  for (const CollectionResult& result : results) {
    const Collection collection{result.collection};
    const bool joined = is_joined(collection);
    for (std::size_t g = 0; g < result.graphs.size(); ++g) {
      const std::string& graph = result.graphs[g];
      if (result.mean[g].empty()) {
        spdlog::warn("{}: no member may score {}, so the submission lacks it", result.collection,
                     graph);
        continue;
      }
      submission.add(joined ? Collection{std::string(collection_of_id(graph))} : collection,
                     joined ? graph_of_id(graph) : graph, result.mean[g]);
    }
  }
  return submission;
}

}  // namespace tpudist
