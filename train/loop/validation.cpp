#include "train/loop/validation.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "data/shards/shard_reader.hpp"
#include "dist/agreement.hpp"
#include "train/units/folds.hpp"

namespace tpudist {

Validation::Validation(const Experiment& experiment, const TrainingSetup& setup,
                       JobContext& context)
    : experiment_(experiment), setup_(setup), context_(context) {
  const DatasetOptions options = experiment.data.evaluation("valid");
  if (!list_graphs(options.shards, options.collection, "valid").empty()) {
    data_.emplace(Dataset::open(options, context.pool));
    units_.emplace(*data_, setup.network, experiment.plan);
    units_->share_graphs(false, context.pool);
    by_ = members_without(experiment.ensemble, setup.folds, *data_);
  } else if (experiment.train.early_stop.patience > 0) {
    throw ConfigError(
        "train.early_stop goes by scores on the validation split, which has no graphs; leave it "
        "out, or give data.include.valid and data.exclude.valid that keep some");
  }
  require_same_on_all_ranks();
}

// The training data were compared when they were opened.
void Validation::require_same_on_all_ranks() const {
  const AgreedValue data{"validation data", data_ ? to_hex(data_->selection_hash()) : "none"};
  require_agreement(context_.world, std::span(&data, 1),
                    "give all ranks the same shards (data.shards)");
}

EvaluationCosts Validation::costs() const {
  return evaluation_costs(setup_, data_ ? &*data_ : nullptr, units_ ? &*units_ : nullptr,
                          context_.pool);
}

Evaluation Validation::start(const std::vector<bool>& alive, std::int64_t most_rows) const {
  Evaluation evaluation = start_evaluation(*data_, alive, most_rows);
  evaluation.held_out_only = !by_.empty();
  evaluation.slates.assign(alive.size(), experiment_.evaluate_block.slates);
  evaluation.names = member_names(experiment_);
  return evaluation;
}

Evaluation Validation::evaluate(std::span<const float> flat, const std::vector<bool>& alive,
                                std::int64_t most_rows) const {
  Evaluation evaluation = evaluate_members(setup_.network, flat, alive, *data_, by_, *units_,
                                           {experiment_.evaluate_block, most_rows}, context_);
  evaluation.names = member_names(experiment_);
  return evaluation;
}

void Validation::log_held_out() const {
  if (by_.empty()) return;
  constexpr std::size_t kListed = 10;  // graphs of a fold; folds.yaml has all of them
  std::vector<std::vector<std::string>> graphs(static_cast<std::size_t>(setup_.folds.folds));
  const std::vector<int> folds = graph_folds(setup_.folds, *data_);
  for (int g = 0; g < data_->size(); ++g) {
    graphs[static_cast<std::size_t>(folds[static_cast<std::size_t>(g)])].push_back(
        data_->graph(g).name);
  }
  spdlog::info(
      "members train on the validation split but for their own fold; each of its graphs is scored "
      "by "
      "the members that hold it out:");
  for (std::size_t fold = 0; fold < graphs.size(); ++fold) {
    const std::span<const std::string> names(graphs[fold]);
    spdlog::info("  fold {}, {} graphs: {}{}", fold, names.size(),
                 join(names.first(std::min(kListed, names.size())), ", "),
                 names.size() > kListed ? ", ..." : "");
  }
}

}  // namespace tpudist
