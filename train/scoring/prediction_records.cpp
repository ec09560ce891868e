#include "train/scoring/prediction_records.hpp"

#include <algorithm>

#include "core/means.hpp"
#include "results/records/settings.hpp"

namespace tpudist {

std::uint64_t variant_hash(const std::vector<ConfigEntry>& entries) {
  return hash_of_settings(variant_entries(entries));
}

PredictedRun run_record(const Experiment& experiment, std::int64_t step,
                        std::uint64_t parameter_hash, std::optional<std::uint64_t> fold_hash,
                        std::optional<std::uint64_t> init_hash) {
  PredictedRun run;
  run.name = experiment.name;
  run.step = step;
  run.parameter_hash = parameter_hash;
  run.settings_hash = experiment.numbers_hash;
  run.variant_hash = variant_hash(experiment.entries);
  run.init_hash = init_hash.value_or(0);
  run.fold_hash = fold_hash.value_or(0);
  run.init_seed = static_cast<std::int64_t>(experiment.init_seed);
  run.order_seed = static_cast<std::int64_t>(experiment.order_seed);
  if (const ScoringSlates& slates = experiment.evaluate_block.slates; slates.wanted()) {
    run.slate_configs = slates.configs;
    run.slate_permutations = slates.permutations;
    run.slate_seed = static_cast<std::int64_t>(slates.seed);
  }
  run.folds = experiment.ensemble.holds_out() ? experiment.ensemble.folds : 0;
  return run;
}

std::vector<PredictedMember> member_records(const Experiment& experiment,
                                            const std::vector<bool>& alive,
                                            const std::vector<InitialAndFinalLoss>& losses,
                                            int run) {
  std::vector<PredictedMember> members;
  for (int m = 0; m < experiment.ensemble.members; ++m) {
    const auto at = static_cast<std::size_t>(m);
    members.push_back({run, experiment.ensemble.number_of(m), experiment.ensemble.held_out_fold(m),
                       !alive[at], losses[at].first, losses[at].last, losses[at].margin});
  }
  return members;
}

PredictionEntry graph_record(const GraphEntry& entry, std::int64_t most_rows, int fold,
                             std::vector<bool> held_out) {
  PredictionEntry graph;
  graph.name = entry.name;
  graph.split = entry.split;
  graph.nodes = entry.nodes;
  graph.configs = entry.configs;
  graph.rows = most_rows > 0 ? std::min(most_rows, entry.configs) : entry.configs;
  graph.fold = fold;
  graph.held_out = std::move(held_out);
  return graph;
}

PredictionRows scores_record(const Dataset& dataset, const ScoresByMember& prediction,
                             int members) {
  PredictionRows record;
  const RunTimes& times = dataset.run_times(prediction.graph);
  for (const std::int64_t row : prediction.rows) {
    const auto config = static_cast<std::size_t>(dataset.config_of(prediction.graph, row));
    record.configs.push_back(static_cast<std::int32_t>(config));
    record.runtime.push_back(times.runtime[config]);
    record.group.push_back(times.group[config]);
    if (!times.normalizer.empty()) record.normalizer.push_back(times.normalizer[config]);
  }
  record.scores.assign(members, std::vector<double>(prediction.rows.size(), kNone));
  for (std::size_t m = 0; m < record.scores.size(); ++m) {
    if (!prediction.scores[m].empty()) record.scores[m] = prediction.scores[m];
  }
  return record;
}

}  // namespace tpudist
