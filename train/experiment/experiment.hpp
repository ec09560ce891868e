#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/slate_order.hpp"
#include "models/losses.hpp"
#include "models/network_config.hpp"
#include "train/experiment/scoring_block.hpp"
#include "train/optimizer/optimizer.hpp"
#include "train/optimizer/schedule.hpp"

namespace tpudist {

enum class RowOrder { shared, per_member };
enum class PlanMode { automatic, dense, refined };
// What is computed as one piece of work: slates as they come, or those of the same graph.
enum class UnitKind { slates, graph };
enum class ReduceMode { tree, all_reduce };
// Which rows of each validation graph the evaluation behind the last step scores: every measured
// row, at most `train.evaluate_rows`, or none at all.
enum class LastEvaluation { all, sampled, none };

// `data:`, apart from what DatasetOptions takes over.
struct DataConfig {
  std::filesystem::path shards;
  Collection collection;
  // Policy for training; evaluation keeps every measured row.
  DuplicatesPolicy duplicates = DuplicatesPolicy::min;
  std::vector<std::string> include_train, include_valid, exclude_train, exclude_valid;
  CacheMode cache = CacheMode::automatic;
  std::uint64_t cache_bytes = 0;

  // Options to open the training rows of a split, or every measured row of it.
  DatasetOptions training() const;
  DatasetOptions evaluation(const std::string& split) const;
};

struct BatchConfig {
  int slates = 4;    // per batch
  int configs = 10;  // K, per slate
  UnitKind unit = UnitKind::slates;
  int unit_slates = 1;   // most slates of a unit
  int config_chunk = 0;  // configurations of a slate that are computed at a time; 0 = all
  int member_chunk = 0;  // members that are computed together; 0 = by the plan
  RowOrder order = RowOrder::shared;
  DrawMode draw = DrawMode::rows;
};

struct TrainConfig {
  std::int64_t steps = 0;
  std::int64_t evaluate_every = 0;    // steps; 0 = only at the end
  std::int64_t checkpoint_every = 0;  // steps; 0 = only at the end
  std::int64_t log_every = 1;         // steps
  std::int64_t evaluate_rows = 1000;  // most rows of a graph in evaluations on the way
  LastEvaluation last_evaluation = LastEvaluation::all;
  int keep_checkpoints = 2;
  int prefetch = 2;          // steps prepared ahead
  bool recompute = false;    // run layers again in the backward pass instead of keeping all states
  bool cuda_graphs = false;  // NetworkOptions::replay
};

struct EnsembleConfig {
  int members = 1;
  bool vary_init = true, vary_order = false, vary_fold = false;
  int folds = 0;  // 0 = none: every member trains on all graphs
};

struct DistConfig {
  ReduceMode reduce = ReduceMode::tree;
  int threads = 0;          // per rank; 0 = auto: the node's cores / ranks on the node
  std::string device;       // auto, cpu or cuda
  bool mixed_cpus = false;  // whether ranks may run on CPUs whose kernels compute different bits
};

// An experiment file, resolved. Plain data.
struct Experiment {
  std::string name;
  std::uint64_t init_seed = 1, order_seed = 1;
  DataConfig data;
  BatchConfig batch;
  NetworkConfig network;
  PlanMode plan = PlanMode::automatic;  // automatic: refined where it has clearly fewer rows
  std::shared_ptr<const SlateLoss> loss;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  ScoringBlock evaluate_block;  // configurations of a graph that are scored in one plan
  EnsembleConfig ensemble;
  DistConfig dist;

  std::string resolved_yaml, resolved_table;
  std::vector<ConfigEntry> entries;  // the same as a list
  std::uint64_t numbers_hash = 0;    // hash_of_settings(entries)
};

// Reads everything and calls document.finish(), so that all mistakes come at once (ConfigError).
Experiment read_experiment(ConfigDocument& document);

}  // namespace tpudist
