#include "results/records/settings.hpp"

#include <gmock/gmock.h>

#include <set>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "tests/support/thrown.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Experiment read(const std::vector<std::string>& overrides = {}) {
  ConfigDocument document = ConfigDocument::parse(
      "{name: a, data: {shards: s, collection: 'tile:xla'}, model: {blocks: [{width: 32}]},"
      " loss: {list_mle: {}}, train: {steps: 10}}",
      "a.yaml", overrides);
  return read_experiment(document);
}

std::vector<ConfigEntry> without_marks(std::vector<ConfigEntry> entries) {
  for (ConfigEntry& entry : entries) entry.is_default = false;
  return entries;
}

std::vector<ConfigEntry> without(std::vector<ConfigEntry> entries, const std::string& key) {
  std::erase_if(entries, [&](const ConfigEntry& entry) { return entry.key == key; });
  return entries;
}

TEST(Settings, AKeyAtItsDefaultLeavesTheHashAlone) {
  std::vector<ConfigEntry> entries = read().entries;
  const std::uint64_t hash = hash_of_settings(entries);
  entries.push_back({"a.key.of.a.later.version", "7", true});
  EXPECT_EQ(hash_of_settings(entries), hash);
  entries.back().is_default = false;
  EXPECT_NE(hash_of_settings(entries), hash);
  EXPECT_EQ(read({"optimizer.beta1=0.9"}).numbers_hash, hash);  // written out
}

TEST(Settings, TheHashDoesNotDependOnTheOrderOfKeys) {
  std::vector<ConfigEntry> entries = read({"optimizer.lr=0.01", "batch.slates=3"}).entries;
  const std::uint64_t hash = hash_of_settings(entries);
  std::ranges::reverse(entries);
  EXPECT_EQ(hash_of_settings(entries), hash);
}

TEST(Settings, EveryFreeKeyMayDiffer) {
  const Experiment before = read();
  const Experiment now =
      read({"name=b", "data.shards=t", "data.cache=stream", "data.cache_bytes=1048576",
            "data.cache_dir=auto", "data.cache_size=1048576", "batch.member_chunk=1",
            "train.recompute=true", "dist.threads=3", "dist.device=cpu", "ensemble.placement=fused",
            "train.evaluate_every=5", "train.checkpoint_every=5", "train.log_every=1",
            "train.evaluate_rows=10", "train.last_evaluation=none", "train.keep_checkpoints=3",
            "train.prefetch=1"});
  EXPECT_EQ(now.numbers_hash, before.numbers_hash);
  EXPECT_THAT(changed_settings(before.entries, now.entries), IsEmpty());
}

// Their default is what the shards say, so that two runs may differ in them though nobody set them.
TEST(Settings, FeaturesOfTheShardsCountAtTheirDefault) {
  auto before = read().entries, now = before;
  before.push_back({"data.schema.node_features", "7", true});
  now.push_back({"data.schema.node_features", "8", true});
  EXPECT_NE(hash_of_settings(before), hash_of_settings(now));
  EXPECT_THAT(changed_settings(before, now), ElementsAre("data.schema.node_features: 7 -> 8"));
  EXPECT_THAT(changed_settings(before, read().entries),
              ElementsAre("data.schema.node_features: 7 -> (not set)"));
}

TEST(Settings, WhatWouldDecideNothingIsRefused) {
  const auto refusal = [](const std::vector<std::string>& overrides) {
    return test::message_of<ConfigError>([&] { read(overrides); });
  };
  EXPECT_THAT(refusal({"batch.bias=5"}), HasSubstr("set mix to fast"));
  EXPECT_EQ(refusal({"batch.bias=5", "batch.mix=fast"}), "");
  EXPECT_THAT(refusal({"model.readout.violation_unset=fits"}), HasSubstr("set violation_ratio"));
  EXPECT_THAT(refusal({"loss={list_mle: {weight: 0}, batch_hinge: {weight: 0}}"}),
              HasSubstr("a weight above 0"));
}

TEST(Settings, NamesEveryChangeWithBothValues) {
  const auto before = read({"optimizer.lr=1e-3"}).entries;
  const auto now = read({"optimizer.lr=0.01", "model.blocks=[{width: 32}, {width: 32}]"}).entries;
  const auto changes = changed_settings(before, now);
  EXPECT_THAT(changes, Contains("optimizer.lr: 0.001 -> 0.01"));
  EXPECT_THAT(changes, Contains("model.blocks.1: (not set) -> {...}"));
  EXPECT_THAT(changed_settings(now, before), Contains("model.blocks.1: {...} -> (not set)"));
  EXPECT_THAT(changed_settings(now, now), IsEmpty());
}

// Kept ids of runs stay: the default loss has no entry of its own, nor has one that a key tells.
TEST(Settings, LossesAtTheirDefaultsHaveHashesOfTheirOwn) {
  const auto hash = [](const std::string& losses) {
    return read({"loss={" + losses + "}"}).numbers_hash;
  };
  EXPECT_EQ(read().numbers_hash, hash("list_mle: {}"));
  const std::vector<std::uint64_t> hashes = {hash("list_mle: {}"), hash("pairwise_hinge: {}"),
                                             hash("mse: {}"), hash("list_mle: {}, mse: {}"),
                                             hash("pairwise_hinge: {}, mse: {}")};
  EXPECT_EQ(std::set(hashes.begin(), hashes.end()).size(), hashes.size());
  Hasher earlier;
  for (const std::string_view word : {"tpudist settings 1", "loss.mse.weight", "2"})
    earlier.update(word);
  EXPECT_EQ(hash_of_settings({{"loss.mse.unit", "1", true}, {"loss.mse.weight", "2", false}}),
            earlier.digest());
}

TEST(Settings, AnotherLossIsAChangeThoughAllItsKeysHaveTheirDefaults) {
  const auto changes =
      changed_settings(read().entries, read({"loss={pairwise_hinge: {}}"}).entries);
  EXPECT_THAT(changes, ElementsAre("loss.list_mle: {...} -> (not set)",
                                   "loss.pairwise_hinge: (not set) -> {...}"));
}

TEST(Settings, TakesTheDefaultWhereASideLacksAKey) {
  const auto all = read().entries;
  const auto fewer = without(all, "optimizer.beta2");  // of a version that had no such key
  EXPECT_THAT(changed_settings(fewer, all), IsEmpty());
  EXPECT_THAT(changed_settings(all, fewer), IsEmpty());
  const auto set = read({"optimizer.beta2=0.99"}).entries;
  EXPECT_THAT(changed_settings(fewer, set), ElementsAre("optimizer.beta2: (not set) -> 0.99"));
  EXPECT_THAT(changed_settings(set, fewer), ElementsAre("optimizer.beta2: 0.99 -> (not set)"));
}

TEST(Settings, AChangedDefaultIsAChange) {
  auto before = read().entries, now = before;
  now.push_back({"optimizer.new", "2", true});
  before.push_back({"optimizer.new", "1", true});
  EXPECT_THAT(changed_settings(before, now), ElementsAre("optimizer.new: 1 -> 2"));
}

// What a checkpoint keeps of them is the resolved YAML.
TEST(Settings, ComeBackFromTheResolvedYaml) {
  const Experiment experiment =
      read({"name='8'", "data.include.train=['a*', 'x: y', '$${env:HOME}']",
            "ensemble.vary=[init, fold]", "ensemble.folds=3", "ensemble.members=3",
            "loss.list_mle.clip_norm=.inf", "data.shards='a \"b\"'"});
  EXPECT_EQ(read_resolved_entries(experiment.resolved_yaml, "a.yaml"),
            without_marks(experiment.entries));
  EXPECT_THROW(read_resolved_entries("name: [", "a.yaml"), ConfigError);
  EXPECT_THROW(read_resolved_entries("- 1", "a.yaml"), ConfigError);
}

TEST(Experiment, TheNameIsThatOfOneFolder) {
  for (const char* name : {"../../x", "/tmp/x", "..", ".", "a/b", "''", ".hidden", "\"a\\nb\""}) {
    EXPECT_THROW(read({std::string("name=") + name}), ConfigError) << name;
  }
  EXPECT_EQ(read({"name=nlp 2, of two"}).name, "nlp 2, of two");
}

}  // namespace
}  // namespace tpudist
