#include "train/experiment/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/config/yaml_scalar.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "models/losses/read_loss.hpp"
#include "train/experiment/settings.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;

int positive(ConfigNode& node, std::string_view key, int fallback, int max = 1 << 20) {
  return static_cast<int>(node.integer(key, fallback, {1, max}));
}

// The name is that of a folder below runs/.
std::string read_name(ConfigNode& root) {
  root.require("name");
  const std::string name = root.text("name", "run");
  const bool odd = std::ranges::any_of(
      name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (odd || name.empty() || name.starts_with('.')) {
    root.mistake("name",
                 "names the run's folder: it may not be empty, begin with a dot, or hold "
                 "slashes or control characters; --run-dir takes any path");
  }
  return name;
}

Collection read_collection(ConfigNode& data) {
  data.require("collection");
  const std::string name = data.text("collection", "layout:xla:random");
  try {
    return Collection::parse(name);
  } catch (const ConfigError& error) {
    data.mistake("collection", error.what());
    return Collection{"layout:xla:random"};
  }
}

DuplicatesPolicy read_duplicates(ConfigNode& data) {
  const std::string name =
      data.choice("duplicates", "min", {"keep", "min", "mean", "median", "first"});
  if (name == "keep") return DuplicatesPolicy::keep;
  if (name == "mean") return DuplicatesPolicy::mean;
  if (name == "median") return DuplicatesPolicy::median;
  if (name == "first") return DuplicatesPolicy::first;
  return DuplicatesPolicy::min;
}

GraphReduction read_reduction(ConfigNode reduce, const Collection& collection) {
  GraphReduction reduction;
  reduction.wanted = reduce.choice("keep", "none", {"none", "config_neighbours"}) != "none";
  if (!reduction.wanted) return reduction;
  if (collection.is_tile()) {
    reduce.mistake(
        "keep", "tile graphs have no configurable nodes to keep the neighbours of: leave it out");
  }
  reduction.hops = positive(reduce, "hops", 1);
  const std::string direction =
      reduce.choice("direction", "both", {"both", "to_producer", "to_consumer"});
  reduction.direction = direction == "both"          ? ReachDirection::both
                        : direction == "to_producer" ? ReachDirection::to_producer
                                                     : ReachDirection::to_consumer;
  reduction.edges = reduce.choice("edges", "touching_config", {"touching_config", "all"}) == "all"
                        ? KeptEdges::all
                        : KeptEdges::touching_config;
  return reduction;
}

DataConfig read_data(ConfigNode data) {
  DataConfig config;
  data.require("shards");
  config.shards = data.text("shards", "tpudist-data");
  config.collection = read_collection(data);
  config.duplicates = read_duplicates(data);
  ConfigNode include = data.child("include"), exclude = data.child("exclude");
  config.include_train = include.texts("train", {});
  config.include_valid = include.texts("valid", {});
  config.exclude_train = exclude.texts("train", {});
  config.exclude_valid = exclude.texts("valid", {});
  config.reduction = read_reduction(data.child("reduce"), config.collection);
  const std::string cache = data.choice("cache", "auto", {"auto", "memory", "stream"});
  config.cache = cache == "memory"   ? CacheMode::memory
                 : cache == "stream" ? CacheMode::stream
                                     : CacheMode::automatic;
  config.cache_bytes = static_cast<std::uint64_t>(data.integer(
      "cache_bytes", std::int64_t{2} << 30, {std::int64_t{1} << 20, std::int64_t{1} << 50}));
  return config;
}

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

// Scores of the evaluations on the way are what it goes by.
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

// Seconds. `words`: what else the key takes.
double duration_of(ConfigNode& node, const char* key, const std::string& text,
                   const char* words = "") {
  const std::optional<double> seconds = parse_duration(text);
  if (!seconds) {
    node.mistake(key, fmt::format("must be {}a time such as 90 (seconds), 45m, 7h30m or 1:30:00, "
                                  "at most 1e9 s, not \"{}\"",
                                  words, text));
  }
  return seconds.value_or(0);
}

TimeLimitConfig read_time_limit(ConfigNode& train) {
  const std::string text = train.text("time_limit", "auto");
  if (text == "auto") return {};
  if (text == "none") return {.seconds = std::nullopt, .slurm = false};
  return {.seconds = duration_of(train, "time_limit", text, "`auto`, `none` or "), .slurm = true};
}

BadLossConfig read_bad_loss(ConfigNode& train, const TrainConfig& config) {
  BadLossConfig bad_loss;
  const std::string policy = train.choice("on_bad_loss", "stop", {"stop", "skip", "roll_back"});
  bad_loss.policy = policy == "skip"        ? BadLossPolicy::skip
                    : policy == "roll_back" ? BadLossPolicy::roll_back
                                            : BadLossPolicy::stop;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bad_loss.above = train.number("bad_loss_above", kInfinity, {0, kInfinity});
  if (bad_loss.policy == BadLossPolicy::roll_back && config.checkpoint_every == 0) {
    train.mistake("on_bad_loss",
                  "rolls members back to the last regular checkpoint, and there are none: give "
                  "train.checkpoint_every");
  }
  return bad_loss;
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
  config.cuda_graphs = train.boolean("cuda_graphs", false);
  config.average = AverageConfig::read(train.child("average"));
  config.early_stop = read_early_stop(train.child("early_stop"), config);
  config.time_limit = read_time_limit(train);
  config.bad_loss = read_bad_loss(train, config);
  return config;
}

int read_folds(ConfigNode& ensemble) {
  const std::string text = ensemble.text("folds", "none");
  if (text == "none") return 0;
  int folds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), folds);
  if (error != std::errc{} || end != text.data() + text.size() || folds < 2) {
    ensemble.mistake("folds", "must be `none` or a number of folds, at least 2");
    return 0;
  }
  return folds;
}

EnsembleConfig read_ensemble(ConfigNode ensemble) {
  EnsembleConfig config;
  config.members = positive(ensemble, "members", 1, 1024);
  config.first_member = static_cast<int>(ensemble.integer("first_member", 0, {0, 1 << 20}));
  config.folds = read_folds(ensemble);
  config.fold_seed = static_cast<std::uint64_t>(ensemble.integer("fold_seed", 1, {0, kMany}));
  if (const std::string file = ensemble.text("fold_file", "none"); file != "none") {
    config.fold_file = file;
    if (config.folds == 0) {
      ensemble.mistake("fold_file", "says which fold each graph has: give their number as `folds`");
    }
  }
  config.vary_init = false;
  for (const std::string& what : ensemble.texts("vary", {"init"})) {
    if (what == "init") {
      config.vary_init = true;
    } else if (what == "order") {
      config.vary_order = true;
    } else if (what == "fold") {
      config.vary_fold = true;
    } else {
      ensemble.mistake("vary", fmt::format("\"{}\" is none of init, order, fold", what));
    }
  }
  config.placement = ensemble.choice("placement", "fused", {"fused", "split"}) == "split"
                         ? Placement::split
                         : Placement::fused;
  if (config.vary_fold && config.folds == 0 && ensemble.has("folds") == false) {
    ensemble.mistake("vary", "varies the fold, but `folds` is not given");
  }
  if (config.folds == 0) config.vary_fold = false;
  if (ensemble.choice("fold_over", "train", {"train", "train+valid"}) == "train+valid") {
    config.fold_over = FoldOver::train_and_valid;
    if (!config.holds_out()) {
      ensemble.mistake("fold_over",
                       "trains members on the validation split but for their own fold: give "
                       "`folds`, and `fold` in `vary`");
    }
  }
  return config;
}

ScoringSlates read_slates(ConfigNode node) {
  ScoringSlates slates;
  slates.configs = node.integer("configs", 0, {0, 1 << 20});
  if (slates.configs == 1)
    node.mistake("configs", "a slate needs at least 2 configurations; 0 scores without slates");
  if (!slates.wanted()) return slates;
  slates.permutations = positive(node, "permutations", slates.permutations, 10'000);
  slates.seed = static_cast<std::uint64_t>(
      node.integer("seed", static_cast<std::int64_t>(slates.seed), {0, kMany}));
  return slates;
}

ScoringBlock read_evaluate(ConfigNode evaluate) {
  ScoringBlock block;
  block.configs = evaluate.integer_or_auto("block", 0, {1, 1 << 20});
  block.rows = evaluate.integer("block_rows", block.rows, {1, kMany});
  block.plan_floats = evaluate.integer("plan_floats", block.plan_floats, {1, kMany});
  block.slates = read_slates(evaluate.child("slate"));
  if (block.slates.wanted() && block.configs > 0)
    evaluate.mistake("block", "slates are computed whole: leave out block, or slate");
  return block;
}

PredictionsConfig read_predictions(ConfigNode predictions) {
  PredictionsConfig config;
  const std::string rows = predictions.text("rows", "none");
  if (rows == "none" || rows == "all") {
    config.wanted = rows == "all";
    return config;
  }
  const auto number = parse_integer(rows);
  if (number.error || number.value < 2) {
    predictions.mistake("rows", "must be `none`, `all` or a number of rows of a graph, at least 2");
    return config;
  }
  config.wanted = true;
  config.most_rows = number.value;
  return config;
}

DistConfig read_dist(ConfigNode dist) {
  DistConfig config;
  config.reduce = dist.choice("reduce", "tree", {"tree", "nccl"}) == "tree"
                      ? ReduceMode::tree
                      : ReduceMode::all_reduce;
  config.threads = static_cast<int>(dist.integer_or_auto("threads", 0, {1, 1024}));
  config.device = dist.choice("device", "auto", {"auto", "cpu", "cuda"});
  config.timeout = duration_of(dist, "timeout", dist.text("timeout", "600"));
  config.mixed_cpus = dist.choice("mixed_cpus", "refuse", {"refuse", "warn"}) == "warn";
  return config;
}

SystemNote read_system(ConfigNode root) {
  SystemNote note;
  if (!root.has("system")) return note;
  ConfigNode system = root.child("system");
  for (const char* key : {"source", "collections", "score"}) system.require(key);
  note.source = system.text("source", "");
  note.collections = system.texts("collections", {});
  for (const std::string& name : note.collections) {
    try {
      Collection::parse(name);
    } catch (const Error& error) {
      system.mistake("collections", error.what());
    }
  }
  note.score = system.text("score", "");
  return note;
}

// What a network of layers cannot do, and what one that mixes the configurations of a slate needs.
void refuse_what_layers_lack(ConfigNode root, const Experiment& experiment) {
  if (!experiment.network.is_composed()) return;
  constexpr const char* kPlainOnly = " is for stacks of plain SAGE layers only: this model needs ";
  if (experiment.network.precision != Precision::fp32)
    root.mistake("precision", std::string("bf16") + kPlainOnly + "fp32");
  ConfigNode train = root.child("train"), batch = root.child("batch");
  if (experiment.train.recompute)
    train.mistake("recompute", std::string("true") + kPlainOnly + "false");
  if (experiment.dist.device == "cuda")
    root.child("dist").mistake("device", std::string("cuda") + kPlainOnly + "cpu");
  if (!experiment.network.mixes_configs()) return;
  if (experiment.batch.config_chunk > 0) {
    batch.mistake(
        "config_chunk",
        "cuts slates, and config_attention takes them whole: set it to auto, or leave the "
        "layer out");
  }
  if (!experiment.evaluate_block.slates.wanted()) {
    root.child("evaluate")
        .mistake("slate",
                 "config_attention makes scores depend on the slate: give evaluate.slate, e.g. "
                 "{configs: 128}");
  }
}

// Early stopping would choose the last step by graphs that others train on.
void require_unseen_graphs_to_stop_early(ConfigNode root, const Experiment& experiment) {
  if (!experiment.ensemble.trains_on_valid() || experiment.train.early_stop.patience == 0) return;
  root.mistake("train",
               "early_stop goes by a validation split that no member trains on; leave it out, or "
               "give ensemble.fold_over=train");
}

}  // namespace

DatasetOptions DataConfig::training() const {
  DatasetOptions options;
  options.shards = shards;
  options.collection = collection;
  options.split = "train";
  options.include = include_train;
  options.exclude = exclude_train;
  options.duplicates = duplicates;
  options.reduction = reduction;
  options.cache = cache;
  options.cache_bytes = cache_bytes;
  return options;
}

DatasetOptions DataConfig::evaluation(const std::string& split) const {
  DatasetOptions options = training();
  options.split = split;
  options.duplicates = DuplicatesPolicy::keep;
  options.include = split == "train"   ? include_train
                    : split == "valid" ? include_valid
                                       : std::vector<std::string>{};
  options.exclude = split == "train"   ? exclude_train
                    : split == "valid" ? exclude_valid
                                       : std::vector<std::string>{};
  return options;
}

DatasetOptions Experiment::training_data() const {
  DatasetOptions options = data.training();
  if (ensemble.trains_on_valid())
    options.second = SecondSplit{"valid", data.include_valid, data.exclude_valid};
  return options;
}

Experiment read_experiment(ConfigDocument& document) {
  Experiment experiment;
  ConfigNode root = document.root();
  experiment.name = read_name(root);
  experiment.system = read_system(root);
  ConfigNode seed = root.child("seed");
  experiment.init_seed = static_cast<std::uint64_t>(seed.integer("init", 1, {0, kMany}));
  experiment.order_seed = static_cast<std::uint64_t>(seed.integer("order", 1, {0, kMany}));
  experiment.data = read_data(root.child("data"));
  experiment.batch = read_batch(root.child("batch"));
  experiment.network =
      NetworkConfig::read(root.child("model"), experiment.data.collection.config_features());
  const std::string plan = root.choice("plan", "auto", {"auto", "dense", "refined"});
  experiment.plan = plan == "dense"     ? PlanMode::dense
                    : plan == "refined" ? PlanMode::refined
                                        : PlanMode::automatic;
  experiment.network.precision = root.choice("precision", "fp32", {"fp32", "bf16"}) == "bf16"
                                     ? Precision::bf16
                                     : Precision::fp32;
  experiment.loss =
      read_loss(root.child("loss"), experiment.data.collection.is_tile() ? TargetKind::normalised
                                                                         : TargetKind::nanoseconds);
  experiment.optimizer = OptimizerConfig::read(root.child("optimizer"));
  experiment.schedule = ScheduleConfig::read(root.child("schedule"));
  experiment.train = read_train(root.child("train"));
  experiment.evaluate_block = read_evaluate(root.child("evaluate"));
  experiment.ensemble = read_ensemble(root.child("ensemble"));
  require_unseen_graphs_to_stop_early(root, experiment);
  experiment.predictions = read_predictions(root.child("predictions"));
  experiment.dist = read_dist(root.child("dist"));
  refuse_what_layers_lack(root, experiment);
  document.finish();
  experiment.resolved_yaml = document.resolved_yaml();
  experiment.entries = document.entries();
  experiment.resolved_table = format_entries(experiment.entries);
  experiment.numbers_hash = hash_of_settings(experiment.entries);
  return experiment;
}

}  // namespace tpudist
