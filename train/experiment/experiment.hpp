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
#include "models/losses/slate_loss.hpp"
#include "models/network/network_config.hpp"
#include "train/experiment/bad_loss_config.hpp"
#include "train/experiment/scoring_block.hpp"
#include "train/experiment/time_limit_config.hpp"
#include "train/optimizer/optimizer.hpp"
#include "train/optimizer/schedule.hpp"
#include "train/optimizer/weight_average.hpp"

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
  GraphReduction reduction;  // of training and of all that is scored
  CacheMode cache = CacheMode::automatic;
  std::uint64_t cache_bytes = 0;
  std::string cache_dir = "none";  // none, auto or a folder: NodeCacheOptions::of
  std::uint64_t cache_size = 0;    // bytes of all files in it

  // Options to open the training rows of the split `train`, or every measured row of a split.
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
  double edge_dropout = 0;  // share of edges that a graph loses in a step, below 1 (EdgeDraw)
};

// `train.early_stop`: EarlyStop says what it does.
struct EarlyStopConfig {
  std::int64_t patience = 0;  // evaluations; 0 = no member stops before the last step
  double min_delta = 0;       // by which a score must exceed the best one
};

struct TrainConfig {
  std::int64_t steps = 0;
  std::int64_t evaluate_every = 0;    // steps; 0 = only at the end
  std::int64_t checkpoint_every = 0;  // steps; 0 = only at the end
  std::int64_t log_every = 1;         // steps
  std::int64_t evaluate_rows = 1000;  // most rows of a graph in evaluations on the way
  LastEvaluation last_evaluation = LastEvaluation::all;
  int keep_checkpoints = 2;
  int prefetch = 2;        // steps prepared ahead
  bool recompute = false;  // run layers again in the backward pass instead of keeping all states
  AverageConfig average;
  EarlyStopConfig early_stop;
  TimeLimitConfig time_limit;
  BadLossConfig bad_loss;
};

// Of which splits folds are made: members train on all of them but their own fold.
enum class FoldOver { train, train_and_valid };

// Whether one run trains all members side by side, or a sweep trains them in runs of their own.
enum class Placement { fused, split };

// Members are counted from 0 within a run. Their numbers go on across the runs that an ensemble is
// cut into: the number of a member decides its initial parameters, its own order and its fold, and
// a run of some members gives each the bits that it has in the run of all.
struct EnsembleConfig {
  int members = 1;
  int first_member = 0;  // number of member 0 of this run
  bool vary_init = true, vary_order = false, vary_fold = false;
  int folds = 0;  // 0 = none: every member trains on all graphs
  std::uint64_t fold_seed = 1;
  FoldOver fold_over = FoldOver::train;
  std::filesystem::path fold_file;  // says which fold each graph has; empty = assign_folds does
  Placement placement = Placement::fused;

  int number_of(int member) const { return first_member + member; }
  // Whether members hold graphs out.
  bool holds_out() const { return folds > 0 && vary_fold; }
  // Whether members train on validation graphs too, but for those of their fold.
  bool trains_on_valid() const { return fold_over == FoldOver::train_and_valid; }
  // The fold whose graphs member `member` of this run never trains on; -1 when it trains on all.
  int held_out_fold(int member) const { return holds_out() ? number_of(member) % folds : -1; }
};

// `predictions:`: what members predict when they have been trained.
struct PredictionsConfig {
  bool wanted = false;
  std::int64_t most_rows = 0;  // of a graph; 0 = all
};

struct DistConfig {
  ReduceMode reduce = ReduceMode::tree;
  int threads = 0;       // per rank; 0 = auto: the node's cores / ranks on the node
  std::string device;    // auto, cpu or cuda
  double timeout = 600;  // seconds in which something must be finished, see Watchdog; 0 = no watch
  bool mixed_cpus = false;  // whether ranks may run on CPUs whose kernels compute different bits
};

// `system:` of an experiment that repeats a published system: where it is described, the collections
// that it was made for, and what it is known to score. All are empty where there is no such key.
struct SystemNote {
  std::string source, score;
  std::vector<std::string> collections;
};

// An experiment file, resolved. Plain data.
struct Experiment {
  std::string name;
  SystemNote system;
  std::uint64_t init_seed = 1, order_seed = 1;
  DataConfig data;
  BatchConfig batch;
  NetworkConfig network;
  PlanMode plan = PlanMode::automatic;  // automatic: refined where it has clearly fewer rows
  std::shared_ptr<const SlateLoss> loss;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  // Configurations of a graph that are scored in one plan. A network that mixes configurations
  // needs evaluate_block.slates.wanted().
  ScoringBlock evaluate_block;
  EnsembleConfig ensemble;
  PredictionsConfig predictions;
  DistConfig dist;

  // Options to open what members train on, each but for its own fold.
  DatasetOptions training_data() const;

  std::string resolved_yaml, resolved_table;
  std::vector<ConfigEntry> entries;  // the same as a list
  std::uint64_t numbers_hash = 0;    // hash_of_settings(entries)
};

// Reads everything and calls document.finish(), so that all mistakes come at once (ConfigError).
Experiment read_experiment(ConfigDocument& document);

}  // namespace tpudist
