#include "inference/in_memory_predictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/means.hpp"
#include "data/loading/fold_file.hpp"
#include "inference/prediction_records.hpp"
#include "records/run_folder.hpp"
#include "schema/model_family.hpp"
#include "scores/score_table.hpp"

namespace tpudist {
namespace {

// What members of a run were trained on, beside what the split tells. Warns where that is the graphs
// of the data set, or their families. A run that took no step was not trained, but imported.
TrainedOn known_graphs(const Dataset& dataset, const TrainedRun& run, bool told_by_split) {
  TrainedOn known;
  try {
    if (run.step > 0) known = trained_on(run);
  } catch (const Error& error) {
    spdlog::warn("not known on which graphs {} was trained: {}", run.path.string(), error.what());
  }
  std::vector<std::string> names;
  for (int g = 0; g < dataset.size(); ++g) names.push_back(dataset.graph(g).name);
  if (const std::string text = known.text(names); !told_by_split && !text.empty())
    spdlog::warn("{} was {}", run.path.string(), text);
  return known;
}

// Whether members of the run train on graphs of this split.
bool trains_on(const Experiment& experiment, const std::string& split) {
  return split == "train" || (split == "valid" && experiment.ensemble.trains_on_valid());
}

// [graphs] the fold of each graph in the run's folds.yaml; empty where there is none that tells.
// Throws ConfigError for a validation split that cannot be told from training data then.
std::vector<int> recorded_folds(const Dataset& dataset, const TrainedRun& run) {
  std::vector<FoldedGraph> graphs;
  for (int g = 0; g < dataset.size(); ++g) {
    const std::string& name = dataset.graph(g).name;
    graphs.push_back({name, model_family(name), dataset.entry(g).nodes, 0});
  }
  try {
    return FoldFile::read(RunFolder(run.path).folds())
        .folds_of(graphs, run.experiment.ensemble.folds);
  } catch (const Error& error) {
    if (dataset.options().split == "valid") {
      throw ConfigError(
          fmt::format("{}; members of {} train on the validation split but for their own fold, so "
                      "that nothing tells which of them may score its graphs",
                      error.what(), run.path.string()));
    }
    spdlog::warn("{}; no training graph counts as held out", error.what());
    return {};
  }
}

}  // namespace

PredictionsHeader prediction_file_header(const Dataset& dataset,
                                         const std::vector<const TrainedRun*>& runs) {
  PredictionsHeader header;
  header.collection = dataset.options().collection.name;
  const std::string& split = dataset.options().split;
  std::vector<std::vector<int>> folds;  // [runs]
  std::vector<TrainedOn> known;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const TrainedRun& run = *runs[r];
    header.runs.push_back(
        run_record(run.experiment, run.step, run.parameter_hash, run.fold_hash, run.init_hash));
    header.runs.back().source = run.path.string();
    known.push_back(known_graphs(dataset, run, trains_on(run.experiment, split)));
    for (PredictedMember& member :
         member_records(run.experiment, run.use, run.losses, static_cast<int>(r)))
      header.members.push_back(member);
    const bool told = trains_on(run.experiment, split) && run.experiment.ensemble.holds_out();
    folds.push_back(told ? recorded_folds(dataset, run) : std::vector<int>());
  }
  for (int g = 0; g < dataset.size(); ++g) {
    int fold = -1;
    std::vector<bool> held_out;
    for (const PredictedMember& member : header.members) {
      const std::vector<int>& of_run = folds[static_cast<std::size_t>(member.run)];
      const int own = of_run.empty() ? -1 : of_run[static_cast<std::size_t>(g)];
      if (own >= 0) fold = own;
      const Experiment& experiment = runs[static_cast<std::size_t>(member.run)]->experiment;
      const auto place = static_cast<std::size_t>(member.number - experiment.ensemble.first_member);
      held_out.push_back(
          (!trains_on(experiment, split) || (own >= 0 && own == member.fold)) &&
          !known[static_cast<std::size_t>(member.run)].knows(dataset.graph(g).name, place));
    }
    header.graphs.push_back(graph_record(dataset.entry(g), 0, fold, std::move(held_out)));
  }
  return header;
}

InMemoryPredictions::InMemoryPredictions(const Dataset& dataset, PredictionsHeader header)
    : dataset_(dataset), header_(std::move(header)) {
  for (PredictedMember& member : header_.members) member.fold = -1;
}

void InMemoryPredictions::add(std::vector<ScoresByMember> predictions) {
  for (ScoresByMember& prediction : predictions) predictions_.push_back(std::move(prediction));
}

PredictionRows InMemoryPredictions::read(int graph) const {
  const ScoresByMember& prediction = predictions_.at(static_cast<std::size_t>(graph));
  const std::size_t members = header_.members.size();
  PredictionRows record = scores_record(dataset_, prediction, static_cast<int>(members));
  for (std::size_t m = 0; m < members; ++m) {
    if (header_.members[m].failed) std::ranges::fill(record.scores[m], kNone);
    if (header_.members[m].failed || prediction.scores[m].empty()) continue;
    for (double& score : record.scores[m])  // NaN alone would say that it was not scored
      if (std::isnan(score)) score = std::numeric_limits<double>::infinity();
  }
  for (std::size_t m = 0; evaluation_ && m < members; ++m) {
    const GraphMetrics& metrics = evaluation_->members[m][static_cast<std::size_t>(graph)];
    record.metrics.push_back(primary_score(metrics, evaluation_->is_tile));
  }
  return record;
}

}  // namespace tpudist
