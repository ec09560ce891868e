#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/error.hpp"
#include "data/schema/collection.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/paths.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist::test {
namespace {

std::filesystem::path folder() {
  return source_folder() / "experiments";
}

Experiment named(const std::string& name, const std::vector<std::string>& overrides = {}) {
  ConfigDocument document = ConfigDocument::load(folder() / (name + ".yaml"), overrides);
  return read_experiment(document);
}

TEST(Experiments, EveryFileLoadsAndIsNamedAsItsFile) {
  std::set<std::string> names, collections;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const std::string name = entry.path().stem().string();
    if (entry.is_directory() || name == "all") continue;  // sweeps
    const Experiment experiment = named(name);
    EXPECT_EQ(experiment.name, name);
    EXPECT_EQ(experiment.ensemble.members, name == "demo_folds" ? 1 : 5) << name;
    names.insert(name);
    if (!name.starts_with("demo") && name != "alexnet" && name != "measured")
      collections.insert(experiment.data.collection.name);
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf(
                         {"demo", "nlp", "nlp_default", "xla", "xla_default", "tile", "alexnet"}));
  EXPECT_EQ(collections.size(), 5);  // one file for each
}

// Published systems, with a description each: the 1st place, two generations of the 2nd place and what
// it tried without gain, TpuGraphs' baselines.
TEST(Experiments, EverySystemLoadsAndSaysWhereItIsFrom) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "systems")) {
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    const Experiment experiment = named("systems/" + name);
    EXPECT_EQ(experiment.name, name);
    EXPECT_THAT(experiment.system.source, HasSubstr("https://"));
    EXPECT_FALSE(experiment.system.score.empty());
    for (const Collection& part : parts_of(experiment.data.collection))
      EXPECT_THAT(experiment.system.collections, Contains(part.name));
    ConfigDocument document = ConfigDocument::parse(experiment.resolved_yaml, "resolved.yaml");
    EXPECT_EQ(read_experiment(document).numbers_hash, experiment.numbers_hash);
    names.insert(name);
  }
  EXPECT_THAT(
      names,
      ElementsAre("boston", "boston_attention", "fifth_place", "first_place_layout",
                  "first_place_layout_crossattn", "first_place_tile", "fourteenth_place",
                  "fourth_place", "gst", "harvard", "harvard_10000_nodes", "harvard_1000_nodes",
                  "harvard_30_columns", "harvard_500_nodes", "harvard_attention", "harvard_ratio",
                  "latenciaga_nlp", "latenciaga_nlp_diffmat", "latenciaga_tile",
                  "latenciaga_tile_diffmat", "latenciaga_xla", "latenciaga_xla_both_directions",
                  "latenciaga_xla_cyclic", "latenciaga_xla_diffmat", "latenciaga_xla_dropout",
                  "latenciaga_xla_four_folds", "latenciaga_xla_gatv2", "latenciaga_xla_gine",
                  "latenciaga_xla_hard_mining", "latenciaga_xla_merged",
                  "latenciaga_xla_train_valid", "sixth_place", "tenth_place", "third_place",
                  "tpugraphs_layout_resmodel", "tpugraphs_layout_sage", "tpugraphs_tile_mlp",
                  "tpugraphs_tile_resgcn_early", "tpugraphs_tile_resgcn_late",
                  "tpugraphs_tile_sage_early", "tpugraphs_tile_sage_late"));
}

TEST(Experiments, SystemsAreThePublishedOnes) {
  const Experiment attention = named("systems/first_place_layout_crossattn");
  EXPECT_TRUE(attention.network.mixes_configs());
  EXPECT_EQ(attention.evaluate_block.slates.configs, 128);
  EXPECT_EQ(attention.evaluate_block.slates.permutations, 10);
  EXPECT_EQ(attention.batch.configs, 64);
  const Experiment random = named("systems/first_place_layout");
  EXPECT_FALSE(random.network.mixes_configs());
  EXPECT_EQ(random.batch.configs, 128);
  for (const Experiment& experiment : {attention, random, named("systems/first_place_tile")}) {
    EXPECT_EQ(experiment.batch.slates, 1);
    EXPECT_EQ(experiment.optimizer.decay_of(ParameterGroup::weights), 1e-5);
    EXPECT_EQ(experiment.optimizer.clip_norm, 1);
    EXPECT_EQ(experiment.data.duplicates, DuplicatesPolicy::first);
    EXPECT_TRUE(experiment.loss->is_translation_invariant);
  }
  const Experiment diff_mat = named("systems/latenciaga_xla_diffmat");
  EXPECT_EQ(diff_mat.optimizer.name, "adam");
  EXPECT_EQ(diff_mat.optimizer.clip_norm, 0);
  EXPECT_EQ(diff_mat.network.encoder.node_transform, FeatureTransform::log_positive);
  EXPECT_FALSE(diff_mat.loss->is_translation_invariant);  // MAPE looks at the level
}

TEST(Experiments, ASystemNeedsAllThatIsSaidOfIt) {
  EXPECT_THAT(message_of<ConfigError>([&] {
                named("nlp", {"system={source: somewhere, collections: [layout:none]}"});
              }),
              AllOf(HasSubstr("score"), HasSubstr("layout:none")));
}

// A resolved file, as a run folder keeps it, loads again and means the same.
TEST(Experiments, ResolvedFilesLoadAgain) {
  for (const char* name : {"nlp", "xla_default", "tile", "alexnet"}) {
    const Experiment experiment = named(name);
    ConfigDocument document = ConfigDocument::parse(experiment.resolved_yaml, "resolved.yaml");
    const Experiment again = read_experiment(document);
    EXPECT_EQ(again.numbers_hash, experiment.numbers_hash) << name;
    EXPECT_EQ(again.resolved_yaml, experiment.resolved_yaml) << name;
  }
}

TEST(Experiments, TakeOverTheSecondPlacesNumbers) {
  const Experiment nlp = named("nlp"), xla = named("xla"), tile = named("tile");
  EXPECT_EQ(nlp.batch.slates, 4);
  EXPECT_EQ(nlp.batch.configs, 10);
  EXPECT_EQ(xla.batch.slates, 10);
  EXPECT_EQ(xla.batch.configs, 4);
  EXPECT_EQ(tile.batch.slates, 100);
  EXPECT_EQ(tile.batch.configs, 10);
  for (const Experiment& experiment : {nlp, xla, tile}) {
    EXPECT_EQ(experiment.train.steps, 400'000);
    EXPECT_EQ(experiment.optimizer.name, "adamw");
    EXPECT_EQ(experiment.optimizer.eps, 1e-6);
    EXPECT_EQ(experiment.optimizer.decay_of(ParameterGroup::weights), 0);
    EXPECT_EQ(experiment.optimizer.decay_of(ParameterGroup::output), 1e-4);
    EXPECT_EQ(experiment.optimizer.clip_norm, 100);
    EXPECT_NEAR(experiment.schedule(399'999, 400'000), 1e-2, 1e-7);
  }
  EXPECT_EQ(nlp.network.blocks.size(), 8);
  EXPECT_TRUE(nlp.network.sage_layers()[1].residual);
  EXPECT_FALSE(xla.network.sage_layers()[1].residual);
  EXPECT_EQ(named("xla_default").data.exclude_valid.size(), 2);
  EXPECT_THAT(named("xla_default").data.exclude, ElementsAre("*unet*"));
}

TEST(Experiments, DataFolderComesFromTheEnvironment) {
  ::setenv("TPUDIST_DATA", "/elsewhere", 1);
  EXPECT_EQ(named("nlp_default").data.shards, "/elsewhere");
  ::unsetenv("TPUDIST_DATA");
  EXPECT_EQ(named("nlp_default").data.shards, "tpudist-data");
}

TEST(Experiments, OverridesWinAndMistakesAreNamed) {
  EXPECT_EQ(named("nlp", {"train.steps=20", "batch.configs=32"}).batch.configs, 32);
  EXPECT_THAT(message_of<ConfigError>([&] { named("nlp", {"train.step=20"}); }),
              AllOf(HasSubstr("\"step\" in \"train\""), HasSubstr("\"steps\"")));
}

TEST(Experiments, PrecisionIsTheNetworks) {
  EXPECT_EQ(named("nlp").network.precision, Precision::fp32);
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    const Experiment given = named("nlp", {"precision=" + std::string(precision_name(precision))});
    EXPECT_EQ(given.network.precision, precision);
    ConfigDocument document = ConfigDocument::parse(given.resolved_yaml, "resolved.yaml");
    EXPECT_EQ(read_experiment(document).network.precision, precision);
  }
  EXPECT_THROW(named("nlp", {"precision=fp16"}), ConfigError);
}

// Where and how fast a run is computed leaves its numbers alone; what is computed does not.
TEST(Experiments, TheHashOfTheNumbersKnowsWhatDecidesThem) {
  const std::uint64_t hash = named("nlp").numbers_hash;
  EXPECT_EQ(named("nlp", {"dist.threads=3", "train.log_every=7", "data.cache=stream"}).numbers_hash,
            hash);
  for (const char* change : {"seed.init=2", "batch.configs=12", "optimizer.lr=2e-3",
                             "model.encoder.width=48", "ensemble.members=4", "train.steps=10",
                             "data.duplicates=mean", "precision=tf32", "precision=bf16"})
    EXPECT_NE(named("nlp", {change}).numbers_hash, hash) << change;
}

}  // namespace
}  // namespace tpudist::test
