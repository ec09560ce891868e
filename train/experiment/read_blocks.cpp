#include "train/experiment/read_blocks.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/numbers.hpp"
#include "data/loading/metis_segments.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/manifest.hpp"

namespace tpudist {
namespace {

// Seconds. `words`: other allowed values of the key.
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

// `train.time_limit`.
TimeLimitConfig read_time_limit(ConfigNode& train) {
  const std::string text = train.text("time_limit", "auto");
  if (text == "auto") return {};
  if (text == "none") return {.seconds = std::nullopt, .slurm = false};
  return {.seconds = duration_of(train, "time_limit", text, "`auto`, `none` or "), .slurm = true};
}

BadLossConfig read_bad_loss(ConfigNode& train) {
  BadLossConfig bad_loss;
  const std::string policy = train.choice("on_bad_loss", "stop", {"stop", "skip"});
  bad_loss.policy = policy == "skip" ? BadLossConfig::Policy::skip : BadLossConfig::Policy::stop;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bad_loss.above = train.number("bad_loss_above", kInfinity, {0, kInfinity});
  return bad_loss;
}

// Early stopping needs the scores of evaluations during training.
EarlyStopConfig read_early_stop(ConfigNode early_stop, const TrainConfig& train) {
  EarlyStopConfig config;
  config.patience = early_stop.integer("patience", 0, {0, kMany});
  config.min_delta = early_stop.number("min_delta", 0, {0, 2});
  if (config.patience > 0 && train.evaluate_every == 0) {
    early_stop.mistake("patience",
                       "counts evaluations on the way, and there are none: give "
                       "train.evaluate_every, or 0 here");
  }
  return config;
}

Collection read_collection(ConfigNode& data) {
  data.require("collection");
  try {
    return merged_collection(data.text_set("collection", "layout:xla:random"));
  } catch (const ConfigError& error) {
    data.mistake("collection", error.what());
    return Collection{"layout:xla:random"};
  }
}

// The schema of own graphs comes from the shards, or, in a run's own file, from the run's training.
// TpuGraphs' schema is known.
void read_schema(ConfigNode& data, DataConfig& config) {
  Collection& collection = config.collection;
  if (collection.is_tpugraphs()) return;
  collection = with_schema(config.shards, collection);
  if (!data.has("schema") && collection.schema == Collection{collection.name}.schema) return;
  ConfigNode schema = data.child("schema");
  schema_fields(collection.schema, [&]<typename T>(const char* key, T& value) {
    if constexpr (std::is_same_v<T, ColumnRange>) {
      if (!parse_columns(schema.text(key, to_text(value)), kMostNodeFeatures, value))
        schema.mistake(key, "must be `none` or columns such as 134-139");
    } else {
      value = static_cast<int>(schema.integer(key, value, {0, kMostNodeFeatures}));
    }
  });
  if (const std::string fault = fault_of(collection.schema); !fault.empty()) {
    data.mistake("schema", fault);
    collection.schema = Collection{collection.name}.schema;
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

// Reads which part of a graph is opened.
void read_kept_nodes(ConfigNode& reduce, const Collection& collection, GraphReduction& reduction) {
  reduction.wanted = reduce.choice("keep", "none", {"none", "config_neighbours"}) != "none";
  if (!reduction.wanted) {
    // These keys are allowed, so that `keep: none` can turn off the keys of a file.
    for (const char* key : {"hops", "direction", "edges"}) {
      if (reduce.has(key) && !reduce.has("keep"))
        reduce.mistake(key, "is of reduced graphs: give data.reduce.keep=config_neighbours");
    }
    return;
  }
  if (collection.is_tile()) {
    reduce.mistake(
        "keep", "tile graphs have no configurable nodes to keep the neighbours of: leave it out");
  }
  reduction.hops = positive(reduce, "hops", 1);
  const std::string direction =
      reduce.choice("direction", "both", {"both", "to_producer", "to_consumer"});
  reduction.direction = direction == "both"          ? GraphReduction::Direction::both
                        : direction == "to_producer" ? GraphReduction::Direction::to_producer
                                                     : GraphReduction::Direction::to_consumer;
  reduction.edges = reduce.choice("edges", "touching_config", {"touching_config", "all"}) == "all"
                        ? GraphReduction::Edges::all
                        : GraphReduction::Edges::touching_config;
}

void read_segments(ConfigNode segments, const Collection& collection, GraphReduction& reduction) {
  const std::string by = segments.choice("by", "none", {"none", "consecutive", "metis"});
  if (by == "none") {
    if (segments.has("nodes") && !segments.has("by"))
      segments.mistake("nodes", "is of segments: give data.segments.by");
    return;
  }
  if (collection.is_tile())
    segments.mistake("by", "layout graphs alone are cut into segments: leave it out");
  reduction.segments = by == "metis" ? SegmentCut::metis : SegmentCut::consecutive;
  if (by == "metis" && !has_metis())
    segments.mistake("by",
                     "this program was built without METIS (Debian's libmetis-dev): give "
                     "consecutive, or build it again where METIS is installed");
  reduction.segment_nodes = segments.integer("nodes", reduction.segment_nodes, {1, kMany});
  if (by == "metis" && reduction.segment_nodes < kFewestByMetis)
    segments.mistake("nodes", "METIS cuts into segments of at least 10 nodes: give more");
}

// Reads which nodes of the opened part are drawn for a slate.
void read_drawn_nodes(ConfigNode& reduce, const Collection& collection, GraphReduction& reduction) {
  reduction.max_nodes = reduce.integer("max_nodes", 0, {0, kMany});
  if (reduction.max_nodes == 0) {
    for (const char* key : {"sample", "drawn", "config_weight"}) {  // `max_nodes: 0` turns them off
      if (reduce.has(key) && !reduce.has("max_nodes"))
        reduce.mistake(key, "is of drawn nodes: give data.reduce.max_nodes");
    }
    return;
  }
  if (collection.is_tile())
    reduce.mistake("max_nodes", "nodes are drawn of layout graphs alone: leave it out");
  reduction.gradient_only = reduce.choice("drawn", "seen", {"seen", "trained"}) == "trained";
  reduction.sample = reduce.choice("sample", "window", {"window", "random"}) == "random"
                         ? GraphReduction::Sample::random
                         : GraphReduction::Sample::window;
  if (reduction.sample == GraphReduction::Sample::random) {
    reduction.config_weight = reduce.number("config_weight", 1, {1e-6, 1e6});
  } else if (reduce.has("config_weight")) {
    reduce.mistake("config_weight", "is of nodes drawn one by one: give data.reduce.sample=random");
  }
}

GraphReduction read_reduction(ConfigNode reduce, const Collection& collection) {
  GraphReduction reduction;
  read_kept_nodes(reduce, collection, reduction);
  read_drawn_nodes(reduce, collection, reduction);
  return reduction;
}

int read_folds(ConfigNode& ensemble) {
  const std::string text = ensemble.text("folds", "none");
  if (text == "none") return 0;
  const auto folds = parse_integer(text);
  if (folds.error || folds.value < 2 || folds.value > std::numeric_limits<int>::max()) {
    ensemble.mistake("folds", "must be `none` or a number of folds, at least 2");
    return 0;
  }
  return static_cast<int>(folds.value);
}

ScoringSlates read_slates(ConfigNode node) {
  ScoringSlates slates;
  slates.configs = node.integer("configs", 0, {0, 1 << 20});
  if (slates.configs == 1)
    node.mistake("configs", "a slate needs at least 2 configurations; 0 scores without slates");
  if (!slates.wanted()) {
    // These keys are allowed, so that `configs: 0` can turn off the keys of a file.
    for (const char* key : {"permutations", "seed"}) {
      if (node.has(key) && !node.has("configs"))
        node.mistake(key, "is of slates, and there are none: give evaluate.slate.configs");
    }
    return slates;
  }
  slates.permutations = positive(node, "permutations", slates.permutations, 10'000);
  slates.seed = static_cast<std::uint64_t>(
      node.integer("seed", static_cast<std::int64_t>(slates.seed), {0, kMany}));
  return slates;
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
  config.rows_per_member =
      batch.choice("order", "shared", {"shared", "per_member"}) == "per_member";
  const std::string draw = batch.choice("draw", "rows", {"rows", "root", "graphs"});
  config.draw = draw == "rows"   ? DrawMode::rows
                : draw == "root" ? DrawMode::root
                                 : DrawMode::graphs;
  const std::string mix = batch.choice("mix", "uniform", {"uniform", "close", "balanced", "fast"});
  config.mix = mix == "uniform"    ? SlateMix::uniform
               : mix == "close"    ? SlateMix::close
               : mix == "balanced" ? SlateMix::balanced
                                   : SlateMix::fast;
  if (config.mix == SlateMix::fast) {
    config.bias = batch.number("bias", config.bias, {0, 1000});
  } else if (batch.has("bias")) {
    batch.mistake(
        "bias",
        "is of slates that are biased to fast configurations: set mix to fast, or leave it out");
  }
  config.stale_keep = batch.number("stale_keep", config.stale_keep, {0, 1});
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
  config.prefetch = positive(train, "prefetch", 4, 64);
  config.recompute = train.boolean("recompute", false);
  if (const std::string from = train.text("init_from", "none"); from != "none")
    config.init_from = from;
  config.init_fresh = train.texts("init_fresh", {});
  if (config.init_from.empty() && !config.init_fresh.empty())
    train.mistake("init_fresh", "is of weights from elsewhere: give train.init_from");
  config.average = AverageConfig::read(train.child("average"));
  config.early_stop = read_early_stop(train.child("early_stop"), config);
  config.time_limit = read_time_limit(train);
  config.bad_loss = read_bad_loss(train);
  return config;
}

DistConfig read_dist(ConfigNode dist) {
  DistConfig config;
  config.all_reduce = dist.choice("reduce", "tree", {"tree", "nccl"}) == "nccl";
  config.threads = static_cast<int>(dist.integer_or_auto("threads", 0, {1, 1024}));
  config.device = dist.choice("device", "auto", {"auto", "cpu", "cuda"});
  config.timeout = duration_of(dist, "timeout", dist.text("timeout", "10m"));
  config.mixed_cpus = dist.choice("mixed_cpus", "refuse", {"refuse", "warn"}) == "warn";
  return config;
}

DataConfig read_data(ConfigNode data) {
  DataConfig config;
  data.require("shards");
  config.shards = data.text("shards", "tpudist-data");
  config.collection = read_collection(data);
  read_schema(data, config);
  config.duplicates = read_duplicates(data);
  config.least_entropy = data.number("entropy_filter", 0, {0, 1e6});
  if (config.least_entropy > 0 && config.collection.is_tile())
    data.mistake("entropy_filter",
                 "compares blocks of 100 measurements, which tile kernels lack: leave it out");
  config.max_configs = data.integer("max_configs", 0, {0, kMany});
  if (config.max_configs == 1)
    data.mistake("max_configs", "must be 0 (all) or at least 2: a ranking needs two");
  ConfigNode include = data.child("include"), exclude = data.child("exclude");
  config.include = include.texts("train", {});
  config.include_valid = include.texts("valid", {});
  config.exclude = exclude.texts("train", {});
  config.exclude_valid = exclude.texts("valid", {});
  config.reduction = read_reduction(data.child("reduce"), config.collection);
  read_segments(data.child("segments"), config.collection, config.reduction);
  const std::string cache = data.choice("cache", "auto", {"auto", "memory", "stream"});
  config.cache = cache == "memory"   ? CacheMode::memory
                 : cache == "stream" ? CacheMode::stream
                                     : CacheMode::automatic;
  const Limits<std::int64_t> sizes{1 << 20, std::int64_t{1} << 50};
  config.cache_bytes =
      static_cast<std::uint64_t>(data.bytes("cache_bytes", std::int64_t{2} << 30, sizes));
  const std::string cache_dir = data.text("cache_dir", "none");
  if (cache_dir.empty()) data.mistake("cache_dir", "must be none, auto or a folder");
  const std::int64_t cache_size = data.bytes("cache_size", std::int64_t{32} << 30, sizes);
  config.node_cache = NodeCacheOptions::of(cache_dir, static_cast<std::uint64_t>(cache_size));
  return config;
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
  const auto vary = ensemble.words("vary", {"init"}, {"init", "order", "fold"});
  const auto varies = [&](const char* what) { return std::ranges::find(vary, what) != vary.end(); };
  config.vary_init = varies("init");
  config.vary_order = varies("order");
  config.vary_fold = varies("fold");
  config.split = ensemble.choice("placement", "fused", {"fused", "split"}) == "split";
  if (config.vary_fold && config.folds == 0 && !ensemble.has("folds")) {
    ensemble.mistake("vary", "varies the fold, but `folds` is not given");
  }
  if (config.folds == 0) config.vary_fold = false;
  if (ensemble.choice("fold_over", "train", {"train", "train+valid"}) == "train+valid") {
    config.trains_on_valid = true;
    if (!config.holds_out()) {
      ensemble.mistake("fold_over",
                       "trains members on the validation split but for their own fold: give "
                       "`folds`, and `fold` in `vary`");
    }
  }
  return config;
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

}  // namespace tpudist
