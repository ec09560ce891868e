#include "inference/in_memory_predictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

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

constexpr double kNotANumber = std::numeric_limits<double>::infinity();

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
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const TrainedRun& run = *runs[r];
    header.runs.push_back(run_record(run));
    for (PredictedMember& member : member_records(run, static_cast<int>(r)))
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
      held_out.push_back(!trains_on(experiment, split) || (own >= 0 && own == member.fold));
    }
    header.graphs.push_back(graph_record(dataset.entry(g), 0, fold, std::move(held_out)));
  }
  mark_trained_graphs(header, runs);
  return header;
}

void mark_trained_graphs(PredictionsHeader& header, const std::vector<const TrainedRun*>& runs) {
  std::size_t first = 0;  // member of the run
  for (const TrainedRun* run : runs) {
    const std::size_t begin = std::exchange(first, first + run->use.size());
    if (run->logged_losses)
      spdlog::warn(
          "{}: an older version left only the losses of logged steps, so that train.log_every "
          "decides with them which members are rejected",
          run->path.string());
    // A run that took no step was not trained, but imported.
    if (run->step == 0 && !std::filesystem::exists(RunFolder(run->path).trained_graphs())) continue;
    TrainedGraphs known;
    try {
      known = trained_graphs(*run, {});
    } catch (const Error& error) {
      spdlog::warn("not known on which graphs {} was trained: {}", run->path.string(),
                   error.what());
      continue;
    }
    const std::vector<std::set<std::string>> trained = known.families();
    std::set<std::string> families, seen, graphs;
    for (PredictionEntry& graph : header.graphs) {
      const std::string family = model_family(graph.name);
      families.insert(family);
      for (std::size_t m = 0; m < run->use.size(); ++m) {
        if (!run->use[m] || !graph.held_out[begin + m]) continue;
        if (known.knows(graph.name, m)) {
          graph.held_out[begin + m] = false;
          graphs.insert(graph.name);
        } else if (m < trained.size() && trained[m].contains(family)) {
          seen.insert(family);
        }
      }
    }
    if (!graphs.empty())
      spdlog::warn(
          "{} was trained on {} of the {} graphs here ({}): its scores on them say nothing of "
          "graphs that it never saw",
          run->path.string(), graphs.size(), header.graphs.size(),
          first_of(std::vector(graphs.begin(), graphs.end()), 5));
    if (!seen.empty())
      spdlog::warn("{}: {}", run->path.string(),
                   seen_families_text(seen, families.size(), "scored"));
  }
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
    if (header_.members[m].failed) {
      std::ranges::fill(record.scores[m], kNone);
    } else if (!prediction.scores[m].empty()) {  // NaN alone would say that it did not score them
      std::ranges::replace_if(
          record.scores[m], [](double score) { return std::isnan(score); }, kNotANumber);
    }
  }
  for (std::size_t m = 0; evaluation_ && m < members; ++m) {
    const GraphMetrics& metrics = evaluation_->members[m][static_cast<std::size_t>(graph)];
    record.metrics.push_back(primary_score(metrics, evaluation_->is_tile));
  }
  return record;
}

}  // namespace tpudist
