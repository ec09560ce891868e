#include "train/experiment/read_training.hpp"

#include "train/experiment/limits.hpp"
#include "train/experiment/read_fault_tolerance.hpp"

namespace tpudist {
namespace {

// It needs the scores of evaluations during training.
EarlyStopConfig read_early_stop(ConfigNode early_stop, const TrainConfig& train) {
  EarlyStopConfig config;
  config.patience = early_stop.integer("patience", 0, {0, kMany});
  config.min_delta = early_stop.number("min_delta", 0, {0, 2});
  if (config.patience > 0 && train.evaluate_every == 0) {
    early_stop.mistake("patience",
                       "counts evaluations on the way, and there are none: give "
                       "train.evaluate_every");
  }
  return config;
}

}  // namespace

BatchConfig read_batch(ConfigNode batch) {
  BatchConfig config;
  config.slates = positive(batch, "slates", 4);
  config.configs = positive(batch, "configs", 10);
  config.unit = batch.choice("unit", "slates", {"slates", "graph"}) == "graph" ? UnitKind::graph
                                                                               : UnitKind::slates;
  config.unit_slates =
      positive(batch, "unit_slates", config.unit == UnitKind::graph ? config.slates : 1);
  config.config_chunk = static_cast<int>(batch.integer_or_auto("config_chunk", 0, {2, 1 << 20}));
  config.member_chunk = static_cast<int>(batch.integer_or_auto("member_chunk", 0, {1, 1024}));
  if (config.config_chunk > 0 && config.unit_slates > 1) {
    batch.mistake("config_chunk", "cuts units of one slate: leave out unit and unit_slates");
  }
  config.order = batch.choice("order", "shared", {"shared", "per_member"}) == "shared"
                     ? RowOrder::shared
                     : RowOrder::per_member;
  config.draw = batch.choice("draw", "rows", {"rows", "graphs"}) == "rows" ? DrawMode::rows
                                                                           : DrawMode::graphs;
  config.edge_dropout = batch.number("edge_dropout", 0, {0, 1});
  if (config.edge_dropout >= 1)
    batch.mistake("edge_dropout", "must be a share of the edges below 1");
  if (config.configs < 2)
    batch.mistake("configs", "a ranking needs at least 2 configurations in a slate");
  return config;
}

TrainConfig read_train(ConfigNode train) {
  TrainConfig config;
  train.require("steps");
  config.steps = train.integer("steps", 1000, {0, kMany});
  config.evaluate_every = train.integer("evaluate_every", 0, {0, kMany});
  config.checkpoint_every = train.integer("checkpoint_every", 0, {0, kMany});
  config.log_every = train.integer("log_every", 10, {1, kMany});
  config.evaluate_rows = train.integer("evaluate_rows", 1000, {2, kMany});
  const std::string last = train.choice("last_evaluation", "all", {"all", "sampled", "none"});
  config.last_evaluation = last == "none"      ? LastEvaluation::none
                           : last == "sampled" ? LastEvaluation::sampled
                                               : LastEvaluation::all;
  config.keep_checkpoints = positive(train, "keep_checkpoints", 2);
  config.prefetch = positive(train, "prefetch", 2, 64);
  config.recompute = train.boolean("recompute", false);
  if (train.has("cuda_graphs")) train.boolean("cuda_graphs", false);  // removed_settings()
  config.average = AverageConfig::read(train.child("average"));
  config.early_stop = read_early_stop(train.child("early_stop"), config);
  config.time_limit = read_time_limit(train);
  config.bad_loss = read_bad_loss(train, config);
  return config;
}

DistConfig read_dist(ConfigNode dist) {
  DistConfig config;
  config.reduce = dist.choice("reduce", "tree", {"tree", "nccl"}) == "tree"
                      ? ReduceMode::tree
                      : ReduceMode::all_reduce;
  config.threads = static_cast<int>(dist.integer_or_auto("threads", 0, {1, 1024}));
  config.device = dist.choice("device", "auto", {"auto", "cpu", "cuda"});
  config.timeout = read_timeout(dist);
  config.mixed_cpus = dist.choice("mixed_cpus", "refuse", {"refuse", "warn"}) == "warn";
  return config;
}

}  // namespace tpudist
