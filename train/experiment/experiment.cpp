#include "train/experiment/experiment.hpp"

#include <algorithm>

#include "core/config/settings.hpp"
#include "core/error.hpp"
#include "models/losses/read_loss.hpp"
#include "train/experiment/limits.hpp"
#include "train/experiment/read_data.hpp"
#include "train/experiment/read_ensemble.hpp"
#include "train/experiment/read_scoring.hpp"
#include "train/experiment/read_training.hpp"
#include "train/experiment/refusals.hpp"

namespace tpudist {
namespace {

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
  options.node_cache = NodeCacheOptions::of(cache_dir, cache_size);
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
  experiment.predictions = read_predictions(root.child("predictions"));
  experiment.dist = read_dist(root.child("dist"));
  refuse_contradictions(root, experiment);
  document.finish();
  experiment.resolved_yaml = document.resolved_yaml();
  experiment.entries = document.entries();
  experiment.resolved_table = format_entries(experiment.entries);
  experiment.numbers_hash = hash_of_settings(experiment.entries);
  return experiment;
}

}  // namespace tpudist
