#include "train/scoring/in_memory_predictions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/means.hpp"
#include "results/scores/score_table.hpp"
#include "train/scoring/prediction_records.hpp"

namespace tpudist {
namespace {

// The graphs that members of a run were trained on. Warns of graphs of the data set, or of their
// families, unless the split tells. A run that took no step was imported, not trained.
TrainedOn known_graphs(const Dataset& dataset, const TrainedRun& run, bool told_by_split) {
  TrainedOn known;
  try {
    if (run.step > 0) known = trained_on(run, dataset.options().shards);
  } catch (const Error& error) {
    spdlog::warn("not known on which graphs {} was trained: {}", run.path.string(), error.what());
  }
  if (const std::string text = known.text(dataset); !told_by_split && !text.empty())
    spdlog::warn("{} was {}", run.path.string(), text);
  return known;
}

// Whether members of the run train on graphs of this split.
bool trains_on(const Experiment& experiment, const std::string& split) {
  return split == "train" || (split == "valid" && experiment.ensemble.trains_on_valid);
}

// [graphs] the fold of each graph in the run's folds.yaml; -1 if unknown. Throws ConfigError if the
// folds are unknown and the validation split may therefore be training data.
std::vector<int> folds_of(const Dataset& dataset, const TrainedRun& run) {
  std::vector<GraphEntry> graphs;
  for (int g = 0; g < dataset.size(); ++g) graphs.push_back(dataset.entry(g));
  try {
    return recorded_folds(run, graphs);
  } catch (const Error& error) {
    if (dataset.options().split == "valid") {
      throw ConfigError(
          fmt::format("{}; members of {} train on the validation split but for their own fold, so "
                      "that nothing tells which of them may score its graphs",
                      error.what(), run.path.string()));
    }
    spdlog::warn("{}; no training graph counts as held out", error.what());
    return std::vector<int>(graphs.size(), -1);
  }
}

}  // namespace

PredictionsHeader prediction_file_header(const Dataset& dataset,
                                         const std::vector<const TrainedRun*>& runs) {
  PredictionsHeader header;
  header.collection = dataset.options().collection.name;
  for (int g = 0; g < dataset.size(); ++g)
    header.graphs.push_back(graph_record(dataset.entry(g), 0, -1, {}));
  for (const TrainedRun* run : runs) {
    const Experiment& experiment = run->experiment;
    const auto members =
        member_records(experiment, run->use, run->losses, static_cast<int>(header.runs.size()));
    header.members.insert(header.members.end(), members.begin(), members.end());
    header.runs.push_back(
        run_record(experiment, run->step, run->parameter_hash, run->fold_hash, run->init_hash));
    header.runs.back().source = run->path.string();
    const bool trains = trains_on(experiment, dataset.options().split);
    const TrainedOn known = known_graphs(dataset, *run, trains);
    std::vector<int> folds(header.graphs.size(), -1);
    if (trains && experiment.ensemble.holds_out()) folds = folds_of(dataset, *run);
    for (std::size_t g = 0; g < folds.size(); ++g) {
      PredictionEntry& graph = header.graphs[g];
      if (folds[g] >= 0) graph.fold = folds[g];
      for (std::size_t m = 0; m < members.size(); ++m)
        graph.held_out.push_back((!trains || (folds[g] >= 0 && folds[g] == members[m].fold)) &&
                                 !known.knows(dataset.entry(static_cast<int>(g)), m));
    }
  }
  return header;
}

InMemoryPredictions::InMemoryPredictions(const ScoringSession& session, PredictionsHeader header)
    : dataset_(session.data()), header_(std::move(header)) {
  std::vector<bool> alive;
  for (PredictedMember& member : header_.members) {
    member.fold = -1;
    alive.push_back(!member.failed);
  }
  if (header_.graphs.front().split != "test")
    evaluation_ = start_evaluation(session, alive, 0, header_.combination.value_or(Combination{}));
}

void InMemoryPredictions::add(std::vector<ScoresByMember> predictions, ThreadPool& pool) {
  if (evaluation_) add_members(*evaluation_, predictions, dataset_, pool);
  std::ranges::move(predictions, std::back_inserter(predictions_));
}

PredictionRows InMemoryPredictions::read(int graph) const {
  const ScoresByMember& prediction = predictions_.at(static_cast<std::size_t>(graph));
  const std::size_t members = header_.members.size();
  PredictionRows record = scores_record(dataset_, prediction, static_cast<int>(members));
  for (std::size_t m = 0; m < members; ++m) {
    if (header_.members[m].failed) std::ranges::fill(record.scores[m], kNone);
  }
  for (std::size_t m = 0; evaluation_ && m < members; ++m) {
    const GraphMetrics& metrics = evaluation_->members[m][graph];
    record.metrics.push_back(primary_score(metrics, evaluation_->is_tile));
  }
  return record;
}

}  // namespace tpudist
