#include "train/experiment/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/config_schema.hpp"
#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "models/losses/losses.hpp"
#include "results/records/settings.hpp"
#include "train/experiment/read_blocks.hpp"

namespace tpudist {
namespace {

// Refuses keys that a network of layers lacks; requires those that mixed configurations need.
void refuse_what_layers_lack(ConfigNode root, const Experiment& experiment) {
  if (!experiment.network.is_composed()) return;
  ConfigNode batch = root.child("batch");
  if (experiment.network.draws_per_element() && experiment.plan == PlanMode::refined) {
    root.mistake("plan",
                 "refined computes equal states once, and dropout with scope: element draws for "
                 "every node and configuration: set it to auto or dense, or scope to row");
  }
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

// Early stopping would choose a member's last step by graphs on which other members train.
void require_unseen_graphs_to_stop_early(ConfigNode root, const Experiment& experiment) {
  if (!experiment.ensemble.trains_on_valid || experiment.train.early_stop.patience == 0) return;
  root.mistake("train",
               "early_stop goes by a validation split that no member trains on; leave it out, or "
               "give ensemble.fold_over=train");
}

// A loss over all slates of a batch needs one unit that holds the whole batch.
void require_a_unit_for_the_batch(ConfigNode root, const Experiment& experiment) {
  const BatchConfig& batch = experiment.batch;
  if (!experiment.loss->batch) return;
  if (batch.unit == UnitKind::slates && batch.unit_slates >= batch.slates &&
      batch.config_chunk == 0)
    return;
  root.child("loss").mistake(
      "batch_hinge",
      fmt::format("compares all slates of a batch, and its units hold fewer: give batch.unit: "
                  "slates, batch.unit_slates: {} and no batch.config_chunk",
                  batch.slates));
}

// Whether the score of a graph is the sum of its parts' scores if no edges join the parts.
bool adds_up_segments(const NetworkConfig& network) {
  const PlanShape shape = network.plan_shape();
  return network.has_head_of_nodes() && !shape.has(EdgeKind::nodes) && !shape.mixes_configs();
}

// Graph Segment Training here needs scores that are sums over segments.
void refuse_what_segments_lack(ConfigNode root, const Experiment& experiment) {
  if (!experiment.data.cuts_segments()) {  // `by: none` turns off what the file says
    if (root.child("batch").has("stale_keep") && !root.child("data").child("segments").has("by"))
      root.child("batch").mistake("stale_keep", "is of segments: give data.segments.by");
    return;
  }
  const auto mistake = [&](const char* why) { root.child("data").mistake("segments", why); };
  if (!adds_up_segments(experiment.network))
    mistake(
        "trains networks whose score is a sum over nodes (readout: {pool: sum} without widths) and "
        "whose layers mix neighbours alone: leave it out, or use another network");
  if (!experiment.loss->is_translation_invariant)
    mistake(
        "needs a loss of differences of scores, as list_mle without clip_norm: segments without "
        "configurable nodes are not "
        "trained, so scores have no level");
  if (experiment.data.reduction.max_nodes > 0)
    mistake("and data.reduce.max_nodes are two ways to see a part of a graph: leave one out");
}

// Copies of drawn nodes are computed beside their graph, and may meet it only in the readout.
void refuse_what_trained_nodes_lack(ConfigNode root, const Experiment& experiment) {
  if (!experiment.data.reduction.gradient_only) return;
  const auto mistake = [&](const char* why) {
    root.child("data").child("reduce").mistake("drawn", why);
  };
  if (experiment.network.plan_shape().has(EdgeKind::nodes) || experiment.network.head.violations)
    mistake(
        "trained is for layers that mix neighbours alone, and not for a violation_ratio: leave it "
        "out, or use another network");
  if (experiment.plan == PlanMode::refined)
    mistake("trained needs dense plans: give another plan than refined");
}

// The dimensions of an operand are known only if a node keeps all its operands.
void require_operands_for_ratios(ConfigNode root, const Experiment& experiment) {
  const auto& ratio = experiment.network.head.violations;
  const GraphReduction& reduction = experiment.data.reduction;
  if (!ratio || ratio->tensor == LayoutTensor::output || !reduction.wanted ||
      reduction.direction != GraphReduction::Direction::to_consumer)
    return;
  root.child("model").child("readout").mistake(
      "violation_ratio",
      "looks at the operands of nodes, of which data.reduce.direction=to_consumer leaves out some: "
      "give direction: both or to_producer, or the ratio of the output");
}

void require_config_nodes_for_config_edges(ConfigNode root, const Experiment& experiment) {
  if (experiment.data.collection.is_tile() && experiment.data.reduction.config_edges)
    root.child("model").mistake(
        "blocks",
        "the directions config_consumer_to_producer and config_producer_to_consumer run between "
        "the configurable nodes of layout graphs, not in tile graphs: leave them out");
}

// Finds contradictions between values of different blocks. `experiment` was read from the blocks
// below `root`. Records each mistake in the document at the key to change.
void refuse_contradictions(ConfigNode root, const Experiment& experiment) {
  require_unseen_graphs_to_stop_early(root, experiment);
  require_a_unit_for_the_batch(root, experiment);
  refuse_what_layers_lack(root, experiment);
  refuse_what_segments_lack(root, experiment);
  refuse_what_trained_nodes_lack(root, experiment);
  require_operands_for_ratios(root, experiment);
  require_config_nodes_for_config_edges(root, experiment);
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

Experiment::System read_system(ConfigNode root) {
  Experiment::System note;
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

DatasetOptions DataConfig::evaluation(const std::string& split) const {
  DatasetOptions options = training();
  options.split = split;
  options.duplicates = DuplicatesPolicy::keep;
  options.max_configs = 0;
  options.least_entropy = 0;
  options.reduction = reduction.scored();
  if (split == "train") return options;
  const bool valid = split == "valid";
  options.include = valid ? include_valid : std::vector<std::string>{};
  options.exclude = valid ? exclude_valid : std::vector<std::string>{};
  return options;
}

DatasetOptions Experiment::training_data() const {
  DatasetOptions options = data.training();
  if (ensemble.trains_on_valid)
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
  experiment.network = NetworkConfig::read(root.child("model"), experiment.data.collection.schema);
  experiment.data.reduction.config_edges = experiment.network.plan_shape().takes_config_edges();
  // `drawn: trained` needs the head after the pool, so that constant nodes train the head, too.
  if (experiment.data.reduction.gradient_only) experiment.network.general = true;
  const std::string plan = root.choice("plan", "auto", {"auto", "dense", "refined"});
  experiment.plan = plan == "dense"     ? PlanMode::dense
                    : plan == "refined" ? PlanMode::refined
                                        : PlanMode::automatic;
  experiment.network.precision =
      precision_of(root.choice("precision", "fp32", {"fp32", "tf32", "bf16"}));
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
  experiment.numbers_hash = hash_of_settings(experiment.entries);
  return experiment;
}

std::string experiment_schema() {
  return config_schema("tpudist experiment", {"data.collection=tile:own", "data.schema={}"},
                       [](ConfigDocument& document) { read_experiment(document); });
}

Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides) {
  ConfigDocument document = ConfigDocument::load(file, overrides);
  Experiment experiment = read_experiment(document);
  std::vector<std::string> absolute = overrides;
  const auto make_absolute = [&](std::string_view key, const std::filesystem::path& path) {
    if (path.empty() || path.is_absolute()) return;
    const auto place = std::filesystem::absolute(path).lexically_normal();
    absolute.push_back(fmt::format("{}={}", key, format_yaml_text(place.string())));
  };
  make_absolute("data.shards", experiment.data.shards);
  make_absolute("ensemble.fold_file", experiment.ensemble.fold_file);
  make_absolute("train.init_from", experiment.train.init_from);
  make_absolute("data.cache_dir", experiment.data.node_cache.place);
  if (absolute.size() == overrides.size()) return experiment;
  ConfigDocument again = ConfigDocument::load(file, absolute);
  return read_experiment(again);
}

std::vector<AgreedValue> values_to_agree(const Experiment& experiment) {
  std::vector<AgreedValue> values;
  for (const ConfigEntry& entry : experiment.entries) {
    const bool is_path = entry.key == "data.shards" || entry.key == "ensemble.fold_file" ||
                         entry.key == "train.init_from";
    if (!is_path) values.push_back({entry.key, entry.value});
  }
  return values;
}

}  // namespace tpudist
