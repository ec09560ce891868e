#include "train/loop/run_predictions.hpp"

#include <algorithm>
#include <optional>

#include "core/file_system.hpp"
#include "core/text.hpp"
#include "data/loading/dataset.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/records/initial_and_final_loss.hpp"
#include "results/records/predictions_file.hpp"
#include "train/scoring/prediction_records.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

// Graphs that the same members of a run predict after training.
struct PredictionPart {
  DatasetOptions data;
  int fold = -1;  // fold of these graphs; -1: the validation split without folds
  std::vector<bool> held_out, members;  // [M] never trained on the graphs; scores the graphs
};

// A run that was killed may have left part of a file.
void remove_leftovers(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    if (is_temporary_name(entry.path().filename().string(), path.filename().string()))
      leftovers.push_back(entry.path());
  }
  for (const auto& leftover : leftovers) posix_file_system().remove(leftover);
}

// The parts to predict. First the training graphs of each fold, in the order of folds, with the
// members that hold the fold out and did not fail; data.entropy_filter leaves no graph out here.
// Then the validation split with all members; if members train on that split, it is also divided by
// folds. Parts without members and folds without training graphs are left out.
std::vector<PredictionPart> prediction_parts(const Experiment& experiment, const FoldTable& folds,
                                             const Dataset& training,
                                             const std::vector<bool>& alive) {
  std::vector<PredictionPart> parts;
  const EnsembleConfig& ensemble = experiment.ensemble;
  std::vector<GraphEntry> in_folds;
  if (folds.folds > 0) in_folds = select_graphs(training.options());
  const auto add = [&](const std::string& split, int fold) {
    PredictionPart part;
    part.fold = fold;
    part.data = experiment.data.evaluation(split);
    part.data.shards = training.options().shards;
    for (int m = 0; m < ensemble.members; ++m) {
      part.held_out.push_back(fold < 0 || ensemble.held_out_fold(m) == fold);
      part.members.push_back(part.held_out.back() && alive[m]);
    }
    if (fold >= 0) part.data.include.clear();
    for (const GraphEntry& graph : in_folds) {
      if (fold >= 0 && graph.split == split && folds.find(graph.name)->fold == fold)
        part.data.include.push_back(escape_glob(graph.name));
    }
    const bool empty =
        std::ranges::count(part.members, true) == 0 || (fold >= 0 && part.data.include.empty());
    if (!empty) parts.push_back(std::move(part));
  };
  for (int fold = 0; fold < folds.folds; ++fold) add("train", fold);
  if (!ensemble.trains_on_valid) {
    add("valid", -1);
  } else {
    for (int fold = 0; fold < folds.folds; ++fold) add("valid", fold);
  }
  return parts;
}

// One file of predictions while it is made.
class RunPrediction {
 public:
  RunPrediction(const TrainingSetup& setup, const TrainingState& state, JobContext& context,
                const std::function<bool()>& stops, Evaluation* evaluation)
      : setup_(setup),
        experiment_(setup.experiment),
        state_(state),
        context_(context),
        stops_(stops),
        evaluation_(evaluation),
        weights_(state.scored_weights()) {
    for (PredictionPart& part :
         prediction_parts(experiment_, setup.folds, setup.data, state.alive())) {
      if (part.fold >= 0 || has_graphs(part.data)) parts_.push_back(std::move(part));
    }
  }

  Predicted write(const std::filesystem::path& path) {
    make_header();
    if (header_.graphs.empty()) return Predicted::nothing;
    run_on_first_rank(context_.world, [&] {
      remove_leftovers(path);
      writer_.emplace(path, header_);
    });
    context_.progress.start("predict", scores_, "scores");
    const bool whole =
        std::ranges::all_of(parts_, [&](const PredictionPart& part) { return predict(part); });
    context_.progress.finish();
    if (!whole) return Predicted::stopped;
    run_on_first_rank(context_.world, [&] { writer_->finish(); });
    if (evaluation_) sort_graphs(*evaluation_);
    return Predicted::all;
  }

 private:
  bool root() const { return context_.world.rank() == 0; }
  int members() const { return experiment_.ensemble.members; }

  // Every rank makes the same header, but for losses, which only rank 0 needs: ranks compared
  // their data when they opened them.
  void make_header() {
    header_.collection = experiment_.data.collection.name;
    header_.most_rows = experiment_.predictions.most_rows;
    header_.combination = Combination{};  // as in the run's evaluations
    const std::uint64_t hash = parameter_hash(weights_, members(), setup_.network.parameters());
    header_.runs = {run_record(experiment_, state_.step, hash,
                               training_folds_hash(setup_.folds, setup_.data), state_.init_hash)};
    run_on_all_ranks(context_.world, [&] {
      std::vector<InitialAndFinalLoss> losses(state_.failed.size());
      if (root()) losses = loss_ends(state_.losses);
      header_.members = member_records(experiment_, state_.alive(), losses, 0);
      for (const PredictionPart& part : parts_) {
        const DatasetOptions& data = part.data;
        for (const GraphEntry& entry :
             filter_graphs(list_graphs(data.shards, data.collection, data.split), data.split,
                           data.include, data.exclude)) {
          header_.graphs.push_back(
              graph_record(entry, header_.most_rows, part.fold, part.held_out));
          scores_ += header_.graphs.back().rows * std::ranges::count(part.members, true);
        }
      }
    });
  }

  // Returns false if a rank asked to stop.
  bool predict(const PredictionPart& part) {
    ScoringSession session(part.data, context_);
    session.add(experiment_, setup_.network);
    session.limit(ScoringMembers(static_cast<std::size_t>(session.data().size()), part.members));
    const auto take = [&](const std::vector<ScoresByMember>& scored) {
      run_on_first_rank(context_.world, [&] {
        for (const ScoresByMember& graph : scored)
          writer_->add(next_ + graph.graph, scores_record(session.data(), graph, members()));
      });
      if (evaluation_ && part.data.split == "valid")
        add_graphs(*evaluation_, scored, session.data(), context_.pool);
    };
    const bool whole = session.score({weights_}, header_.most_rows, take, stops_);
    next_ += session.data().size();
    return whole;
  }

  const TrainingSetup& setup_;
  const Experiment& experiment_;
  const TrainingState& state_;
  JobContext& context_;
  const std::function<bool()>& stops_;
  Evaluation* const evaluation_;
  const AlignedFloats weights_;  // [M, P]
  std::vector<PredictionPart> parts_;
  PredictionsHeader header_;
  std::int64_t scores_ = 0;
  int next_ = 0;                             // first graph of the next part
  std::optional<PredictionsWriter> writer_;  // on rank 0
};

}  // namespace

Predicted write_predictions(const std::filesystem::path& path, const TrainingSetup& setup,
                            const TrainingState& state, JobContext& context,
                            const std::function<bool()>& stops, Evaluation* evaluation) {
  return RunPrediction(setup, state, context, stops, evaluation).write(path);
}

ScoringCost predictions_cost(const TrainingSetup& setup, JobContext& context) {
  const Experiment& experiment = setup.experiment;
  const std::vector<bool> alive(experiment.ensemble.members, true);
  ScoringCost sum;
  for (const PredictionPart& part : prediction_parts(experiment, setup.folds, setup.data, alive)) {
    const auto data = open_for_costs(part.data, context.pool);
    if (!data) continue;
    ScoringSession session(*data, context);
    session.add(experiment, setup.network);
    sum += session.cost(static_cast<int>(std::ranges::count(part.members, true)),
                        experiment.predictions.most_rows);
  }
  return sum;
}

}  // namespace tpudist
