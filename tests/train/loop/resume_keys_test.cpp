// Which keys of an experiment may differ between a run and its resumption, for every key of
// docs/configuration.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "tests/support/paths.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

// The name of a key, and a value other than that of the tiny experiment. Keys that are read only
// beside another one, such as those of `loss` and `schedule`, have that in `before`, one in a line.
struct ChangedKey {
  std::string key, value;
  std::string before = "seed.init=1";
};

// A run that weights can be taken from, made once.
const std::string& init_from_a_run() {
  static const TempDir folder;
  static const std::string override = [] {
    run(tiny_experiment({"train.steps=0", "train.last_evaluation=none"}), folder / "run");
    return "train.init_from=" + (folder / "run").string();
  }();
  return override;
}

std::string batch_hinge() {
  return "batch.unit_slates=3\nloss={batch_hinge: {top: 1}}";
}

const std::vector<ChangedKey>& deciding_keys() {
  static const std::vector<ChangedKey> keys{
      {"seed.init", "2"},
      {"seed.order", "2"},
      {"plan", "dense"},
      {"precision", "bf16"},
      {"data.collection", "[layout:xla:random, layout:xla:default]"},
      {"data.collection", "tile:xla"},
      {"data.duplicates", "mean"},
      {"data.max_configs", "5"},
      {"data.entropy_filter", "0.01"},
      {"data.include.train", "['*']"},
      {"data.include.valid", "['*']"},
      {"data.exclude.train", "[nothing_is_called_so]"},
      {"data.exclude.valid", "[nothing_is_called_so]"},
      {"data.reduce.keep", "config_neighbours"},
      {"data.reduce.hops", "2", "data.reduce={keep: config_neighbours}"},
      {"data.reduce.direction", "to_producer", "data.reduce={keep: config_neighbours}"},
      {"data.reduce.edges", "all", "data.reduce={keep: config_neighbours}"},
      {"data.reduce.max_nodes", "20"},
      {"data.reduce.sample", "random", "data.reduce={max_nodes: 20}"},
      {"data.reduce.drawn", "trained", "data.reduce={max_nodes: 20}"},
      {"data.reduce.config_weight", "2", "data.reduce={max_nodes: 20, sample: random}"},
      {"data.segments.by", "consecutive", "loss.list_mle.clip_norm=.inf"},
      {"data.segments.nodes", "20",
       "loss.list_mle.clip_norm=.inf\ndata.segments={by: consecutive}"},
      {"batch.stale_keep", "0.25", "loss.list_mle.clip_norm=.inf\ndata.segments={by: consecutive}"},
      {"batch.slates", "2"},
      {"batch.configs", "5"},
      {"batch.unit", "graph"},
      {"batch.unit_slates", "2"},
      {"batch.config_chunk", "2"},
      {"batch.order", "per_member"},
      {"batch.draw", "graphs"},
      {"batch.mix", "balanced"},
      {"batch.bias", "2", "batch.mix=fast"},
      {"batch.edge_dropout", "0.5"},
      {"model.preset", "latenciaga_nlp"},
      {"model.encoder.opcode_width", "8"},
      {"model.encoder.node_width", "16"},
      {"model.encoder.width", "16"},
      {"model.encoder.node_transform", "raw"},
      {"model.encoder.node_columns", "0-9"},
      {"model.encoder.dimension_features", "true"},
      {"model.encoder.random_walk", "3"},
      {"model.encoder.random_walk_loops", "true", "model.encoder={random_walk: 3}"},
      {"model.encoder.config_transform", "log"},
      {"model.encoder.code_width", "2"},
      {"model.encoder.config_scale", "100"},
      {"model.encoder.join", "late", "model.blocks=[{layer: join_config, width: 8}]"},
      {"model.encoder.initialise", "xavier"},
      {"model.encoder.bias_value", "0.1", "model.encoder={initialise: xavier}"},
      {"model.encoder.activation", "gelu"},
      {"model.blocks", "[{width: 24}]"},
      {"model.readout.pool", "mean"},
      {"model.readout.scale", "0.5"},
      {"model.readout.widths", "[8]"},
      {"model.readout.config_widths", "[8]", "data.collection=tile:xla"},
      {"model.readout.join_config", "true", "data.collection=tile:xla"},
      {"model.readout.bias", "false"},
      {"model.readout.violation_ratio", "output"},
      {"model.readout.violation_order", "major_to_minor",
       "model.readout={violation_ratio: output}"},
      {"model.readout.violation_unset", "violates", "model.readout={violation_ratio: output}"},
      {"model.readout.activation", "gelu"},
      {"loss.list_mle.weight", "2"},
      {"loss.list_mle.clip_norm", "100"},
      {"loss.list_mle.temperature", "2"},
      {"loss.diff_mat.weight", "2", "loss={diff_mat: {}}"},
      {"loss.diff_mat.margin", "0.1", "loss={diff_mat: {}}"},
      {"loss.diff_mat.scale", "inverse_margin", "loss={diff_mat: {}}"},
      {"loss.pairwise_hinge.weight", "2", "loss={pairwise_hinge: {}}"},
      {"loss.pairwise_hinge.margin", "0.5", "loss={pairwise_hinge: {}}"},
      {"loss.pairwise_hinge.reduction", "sum", "loss={pairwise_hinge: {}}"},
      {"loss.pairwise_logistic.weight", "2", "loss={pairwise_logistic: {}}"},
      {"loss.pairwise_logistic.sigma", "2", "loss={pairwise_logistic: {}}"},
      {"loss.pairwise_logistic.reduction", "sum", "loss={pairwise_logistic: {}}"},
      {"loss.pairwise_hinge.permutations", "2", "loss={pairwise_hinge: {}}"},
      {"loss.pairwise_hinge.hardest", "0.5", "loss={pairwise_hinge: {}}"},
      {"loss.pairwise_hinge.top", "2", "loss={pairwise_hinge: {}}"},
      {"loss.pairwise_hinge.top_weight", "2", "loss={pairwise_hinge: {top: 2}}"},
      {"loss.pairwise_logistic.permutations", "2", "loss={pairwise_logistic: {}}"},
      {"loss.pairwise_logistic.hardest", "0.5", "loss={pairwise_logistic: {}}"},
      {"loss.pairwise_logistic.top", "2", "loss={pairwise_logistic: {}}"},
      {"loss.pairwise_logistic.top_weight", "2", "loss={pairwise_logistic: {top: 2}}"},
      {"loss.batch_hinge.weight", "2", batch_hinge()},
      {"loss.batch_hinge.relative", "true", batch_hinge()},
      {"loss.batch_hinge.margin", "0.5", batch_hinge()},
      {"loss.batch_hinge.reduction", "sum", batch_hinge()},
      {"loss.batch_hinge.permutations", "2", batch_hinge()},
      {"loss.batch_hinge.hardest", "0.5", batch_hinge()},
      {"loss.batch_hinge.top", "2", batch_hinge()},
      {"loss.batch_hinge.top_weight", "2", batch_hinge()},
      {"loss.mape.weight", "2", "loss={mape: {unit: milliseconds}}"},
      {"loss.mape.unit", "seconds", "loss={mape: {unit: milliseconds}}"},
      {"loss.mse.weight", "2", "loss={mse: {unit: milliseconds}}"},
      {"loss.mse.unit", "seconds", "loss={mse: {unit: milliseconds}}"},
      {"optimizer.name", "adam"},
      {"optimizer.lr", "0.01"},
      {"optimizer.beta1", "0.8"},
      {"optimizer.beta2", "0.99"},
      {"optimizer.eps", "1e-7"},
      {"optimizer.clip_norm", "50"},
      {"optimizer.clip_tensor_norm", "0.01", "optimizer.clip_norm=0"},
      {"optimizer.decay.all", "1e-5"},
      {"optimizer.decay.weights", "1e-5"},
      {"optimizer.decay.biases", "1e-5"},
      {"optimizer.decay.embeddings", "1e-5"},
      {"optimizer.decay.norms", "1e-5"},
      {"optimizer.decay.output", "1e-5"},
      {"optimizer.decay.clipped", "true",
       "optimizer={name: adam, clip_norm: 0, clip_tensor_norm: 1, decay: {all: 0.1}}"},
      {"schedule.name", "cosine", "schedule={name: constant}"},
      {"schedule.at", "[0.5, 0.8]"},
      {"schedule.factor", "0.5"},
      {"schedule.floor", "0.1", "schedule={name: cosine}"},
      {"schedule.cycles", "2", "schedule={name: cosine}"},
      {"schedule.warmup", "0.1"},
      {"train.steps", "7"},
      {"train.init_from", "elsewhere"},
      {"train.init_fresh", "['head.*']", init_from_a_run()},
      {"train.early_stop.patience", "3", "train.evaluate_every=1"},
      {"train.early_stop.min_delta", "0.1"},
      {"train.on_bad_loss", "skip"},
      {"train.bad_loss_above", "1000"},
      {"train.average.kind", "ema"},
      {"train.average.decay", "0.5", "train.average={kind: ema}"},
      {"train.average.from", "0.5", "train.average={kind: swa}"},
      {"train.average.every", "2", "train.average={kind: swa}"},
      {"evaluate.block", "16"},
      {"evaluate.block_rows", "1000"},
      {"evaluate.plan_floats", "1000000"},
      {"evaluate.slate.configs", "16"},
      {"evaluate.slate.permutations", "2", "evaluate={slate: {configs: 16}}"},
      {"evaluate.slate.seed", "2", "evaluate={slate: {configs: 16}}"},
      {"ensemble.members", "2"},
      {"ensemble.first_member", "3"},
      {"ensemble.vary", "[init]"},
      {"ensemble.folds", "3"},
      {"ensemble.fold_seed", "2"},
      {"ensemble.fold_over", "train+valid"},
      {"dist.reduce", "nccl"},
  };
  return keys;
}

// `shards`: the data, in another folder. The run that is resumed lies beside it.
std::vector<ChangedKey> free_keys(const std::filesystem::path& shards) {
  return {
      {"name", "other"},
      {"system", "{source: a book, collections: ['tile:xla'], score: unknown}"},
      {"data.shards", shards.string()},
      {"data.cache", "stream"},
      {"data.cache_bytes", "1048576"},
      {"data.cache_dir", "auto"},
      {"data.cache_size", "1048576"},
      {"batch.member_chunk", "1"},
      {"train.evaluate_every", "1"},
      {"train.evaluate_rows", "10"},
      {"train.last_evaluation", "none"},
      {"train.checkpoint_every", "1"},
      {"train.keep_checkpoints", "5"},
      {"train.log_every", "1"},
      {"train.prefetch", "1"},
      {"train.recompute", "true"},
      {"ensemble.fold_file", (shards.parent_path() / "run/folds.yaml").string()},
      {"ensemble.placement", "split"},
      {"predictions.rows", "5"},
      {"dist.threads", "2"},
      {"dist.device", "cpu"},
      {"dist.timeout", "30"},
      {"train.time_limit", "1h"},
      {"dist.mixed_cpus", "warn"},
  };
}

// Keys of the tables in docs/configuration.md, and whether they are marked as free. Those of a
// layer stand for model.blocks and are left out.
std::map<std::string, bool> documented_keys() {
  std::ifstream file(test::source_folder() / "docs/configuration.md");
  std::map<std::string, bool> keys;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `") || line.starts_with("| `  ")) continue;
    const std::string cell = line.substr(2, line.find(" |", 2) - 2);
    std::string last;
    for (std::size_t begin = cell.find('`'); begin != std::string::npos;
         begin = cell.find('`', begin)) {
      const std::size_t end = cell.find('`', begin + 1);
      const std::string name = cell.substr(begin + 1, end - begin - 1);
      // "`data.include.train`, `.valid`"
      last = name.starts_with('.') ? last.substr(0, last.rfind('.')) + name : name;
      keys[last] = cell.find("°") != std::string::npos;
      begin = end + 1;
    }
  }
  return keys;
}

// Resumes a copy of the run for no step.
void resume_with(const std::filesystem::path& original, const Experiment& experiment) {
  const TempDir folder;
  std::filesystem::copy(original, folder / "run", std::filesystem::copy_options::recursive);
  const TrainOutcome outcome =
      run(experiment, folder / "run", 1, /*resume=*/true, [] { return true; });
  EXPECT_EQ(outcome.steps, 2);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A run that was stopped after two steps.
void start_with(const std::filesystem::path& folder, const std::string& overrides) {
  run(tiny_experiment(lines_of(overrides)), folder, 1, false, stop_after(2));
}

using ResumeKeys = TrainTest;

TEST_F(ResumeKeys, AreThoseOfTheDocumentation) {
  std::map<std::string, bool> tested;
  for (const ChangedKey& key : deciding_keys()) tested[key.key] = false;
  for (const ChangedKey& key : free_keys("x")) tested[key.key] = true;
  EXPECT_EQ(tested, documented_keys());
}

TEST_F(ResumeKeys, EveryFreeKeyMayChange) {
  std::filesystem::copy(test::tiny_shards(), folder / "shards",
                        std::filesystem::copy_options::recursive);
  start_with(folder / "run", "seed.init=1");
  for (const ChangedKey& changed : free_keys(folder / "shards")) {
    SCOPED_TRACE(changed.key);
    EXPECT_NO_THROW(
        resume_with(folder / "run", tiny_experiment({changed.key + "=" + changed.value})));
  }
}

TEST_F(ResumeKeys, EveryOtherKeyIsRefused) {
  std::map<std::string, std::filesystem::path> runs;  // by what was overridden
  for (const ChangedKey& changed : deciding_keys()) {
    const auto [at, fresh] = runs.emplace(changed.before, folder / std::to_string(runs.size()));
    if (fresh) start_with(at->second, changed.before);
    std::vector<std::string> overrides = lines_of(changed.before);
    overrides.push_back(changed.key + "=" + changed.value);
    const Experiment experiment = tiny_experiment(overrides);
    SCOPED_TRACE(changed.key);
    EXPECT_THROW(resume_with(at->second, experiment), ConfigError);
  }
}

}  // namespace
}  // namespace tpudist::test
