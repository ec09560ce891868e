#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/slate_order.hpp"
#include "dist/health/agreement.hpp"
#include "models/losses/slate_loss.hpp"
#include "models/network/network_config.hpp"
#include "train/experiment/scoring_block.hpp"
#include "train/optimizer/optimizer.hpp"

namespace tpudist {

// `train.time_limit`.
struct TimeLimitConfig {
  // Seconds of wall-clock time for a training; a resumed training starts at 0 again. Nothing: no
  // limit of its own.
  std::optional<double> seconds;
  bool slurm = true;  // whether the end of the Slurm job is a limit too
};

// `train.on_bad_loss` and `train.bad_loss_above`.
struct BadLossConfig {
  // What to do with a member whose loss or gradient is not finite, or whose loss is too large.
  enum class Policy {
    stop,  // drop the member for the rest of the training
    skip,  // the member takes no step in this batch
  };

  Policy policy = Policy::stop;
  double above = std::numeric_limits<double>::infinity();  // larger losses count as bad
};

enum class PlanMode { automatic, dense, refined };
// How a batch is cut into units: by slates in their order, or by graph.
enum class UnitKind { slates, graph };
// The rows of each validation graph to score in the evaluation after the last step: all measured
// rows, at most `train.evaluate_rows`, or none.
enum class LastEvaluation { all, sampled, none };

// `data:`: the options to open the training rows of the split `train`, and the graphs of `valid`.
struct DataConfig : DatasetOptions {
  std::vector<std::string> include_valid, exclude_valid;

  DataConfig() {
    split = "train";
    duplicates = DuplicatesPolicy::min;
  }
  bool cuts_segments() const { return reduction.segments != SegmentCut::none; }
  const DatasetOptions& training() const { return *this; }
  // Options to open all measured rows of a split.
  DatasetOptions evaluation(const std::string& split) const;
};

struct BatchConfig {
  int slates = 4;    // per batch
  int configs = 10;  // K, per slate
  UnitKind unit = UnitKind::slates;
  int unit_slates = 1;           // most slates of a unit
  int config_chunk = 0;          // configurations of a slate computed at a time; 0 = all
  int member_chunk = 0;          // members computed together; 0 = depends on the plan
  bool rows_per_member = false;  // batch.order
  DrawMode draw = DrawMode::rows;
  SlateMix mix = SlateMix::uniform;
  double bias = 3;          // of SlateMix::fast
  double edge_dropout = 0;  // share of a graph's edges dropped in a step, below 1 (GraphDraw)
  double stale_keep = 0.5;  // cut graphs: probability to take a segment's score from the table
};

// `train.early_stop`, see EarlyStop.
struct EarlyStopConfig {
  std::int64_t patience = 0;  // evaluations; 0 = no member stops before the last step
  double min_delta = 0;       // a better score must exceed the best one by more than this
};

struct TrainConfig {
  std::int64_t steps = 0;
  std::int64_t evaluate_every = 0;    // steps; 0 = only at the end
  std::int64_t checkpoint_every = 0;  // steps; 0 = only at the end
  std::int64_t log_every = 1;         // steps
  std::int64_t evaluate_rows = 1000;  // most rows of a graph in evaluations before the last step
  LastEvaluation last_evaluation = LastEvaluation::all;
  int keep_checkpoints = 2;
  int prefetch = 4;        // steps prepared ahead
  bool recompute = false;  // recompute states in the backward pass instead of keeping all
  // The run folder or safetensors file with the members' first weights; empty: none.
  std::filesystem::path init_from;
  std::vector<std::string> init_fresh;  // patterns of tensors that are not taken
  AverageConfig average;
  EarlyStopConfig early_stop;
  TimeLimitConfig time_limit;
  BadLossConfig bad_loss;
};

// Members are indexed from 0 within a run. If several runs train one ensemble, member numbers
// continue across the runs. The number determines a member's initial parameters, its own order and
// its fold, so a member gets the same bits in a run with some members and in a run with all.
struct EnsembleConfig {
  int members = 1;
  int first_member = 0;  // number of member 0 of this run
  bool vary_init = true, vary_order = false, vary_fold = false;
  int folds = 0;  // 0 = none: every member trains on all graphs
  std::uint64_t fold_seed = 1;
  // ensemble.fold_over: whether the validation split is divided into folds, too, and members train
  // on all its graphs except those of their fold.
  bool trains_on_valid = false;
  std::filesystem::path fold_file;  // gives the fold of each graph; empty = assign_folds
  // `placement: split`: a sweep trains each member in its own run, not all side by side in one.
  bool split = false;

  int number_of(int member) const { return first_member + member; }
  // Whether members hold graphs out.
  bool holds_out() const { return folds > 0 && vary_fold; }
  // The fold that member `member` of this run never trains on; -1: the member trains on all graphs.
  int held_out_fold(int member) const { return holds_out() ? number_of(member) % folds : -1; }
};

// `predictions:`, the scores that members write after training.
struct PredictionsConfig {
  bool wanted = false;
  std::int64_t most_rows = 0;  // of a graph; 0 = all
};

struct DistConfig {
  bool all_reduce = false;  // dist.reduce: nccl; else the fixed tree
  int threads = 0;          // per rank; 0 = auto: the node's cores / ranks on the node
  std::string device;       // auto, cpu or cuda
  double timeout = 600;     // seconds without progress before the watchdog ends the job; 0 = off
  bool mixed_cpus = false;  // whether ranks may run on CPUs whose kernels compute different bits
};

// An experiment file, resolved. Plain data.
struct Experiment {
  // `system:` of an experiment that repeats a published system: the system's description, the
  // collections for which it was made, and its published score. All empty without this key.
  struct System {
    std::string source, score;
    std::vector<std::string> collections;
  };

  std::string name;
  System system;
  std::uint64_t init_seed = 1, order_seed = 1;
  DataConfig data;
  BatchConfig batch;
  NetworkConfig network;
  PlanMode plan = PlanMode::automatic;  // automatic: refined if that needs clearly fewer rows
  std::shared_ptr<const SlateLoss> loss;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  // The configurations of a graph that are scored in one plan. A network that mixes configurations
  // needs evaluate_block.slates.wanted().
  ScoringBlock evaluate_block;
  EnsembleConfig ensemble;
  PredictionsConfig predictions;
  DistConfig dist;

  // Options to open the graphs that members train on, including their held-out folds.
  DatasetOptions training_data() const;

  std::string resolved_yaml;
  std::vector<ConfigEntry> entries;  // the same as a list
  std::uint64_t numbers_hash = 0;    // hash_of_settings(entries)
};

// Reads everything and calls document.finish(), which throws one ConfigError with all mistakes.
Experiment read_experiment(ConfigDocument& document);

// The JSON Schema of experiment files (config_schema).
std::string experiment_schema();

// Reads an experiment file with `key=value` overrides. Paths become absolute, so that the resolved
// configuration works from any working folder. Throws ConfigError with every mistake.
Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides = {});

// The values of an experiment that must be equal on all ranks: every resolved value by its key.
// Excluded are the paths of shards, fold file and first weights, which may differ between nodes:
// ranks compare the content after reading.
std::vector<AgreedValue> values_to_agree(const Experiment& experiment);

}  // namespace tpudist
