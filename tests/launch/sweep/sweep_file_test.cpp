#include "launch/sweep/sweep_file.hpp"

#include <cmath>
#include <filesystem>
#include <set>

#include "core/error.hpp"
#include "tests/launch/sweep/sweep_case.hpp"
#include "tests/support/paths.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist::test {
namespace {

class SweepFileTest : public ::testing::Test, protected SweepCase {
 protected:
  std::string mistake(const std::string& text) const {
    return message_of<ConfigError>([&] { SweepFile::load(sweep(text)); });
  }
};

TEST_F(SweepFileTest, ReadsEverything) {
  const SweepFile file = SweepFile::load(sweep(R"(
set: {train.steps: 9, optimizer.decay: {all: 0.1}}
sweep: {seeds: [4, 2], folds: 3, draws: {count: 5, seed: 2}, over: {optimizer.lr: [1e-4, 1e-3]}}
placement: split
halving: {rungs: 2, keep: 4}
choose: {by: out_of_fold, seeds: 4, set: {batch.configs: 8}}
)"));
  EXPECT_EQ(file.name, "case");
  EXPECT_THAT(file.experiments, ElementsAre(path("tiny.yaml")));
  EXPECT_THAT(file.overrides, ElementsAre("train.steps=9", "optimizer.decay.all=0.1"));
  EXPECT_THAT(file.seeds, ElementsAre(4u, 2u));
  EXPECT_EQ(file.folds, 3);
  EXPECT_EQ(file.draws, 5);
  EXPECT_TRUE(file.split);
  EXPECT_EQ(file.rungs, 2);
  EXPECT_EQ(file.keep, 4);
  EXPECT_EQ(file.choice, ChoiceScore::out_of_fold);
  EXPECT_EQ(file.fresh_seeds, 4);
  EXPECT_THAT(file.confirm_overrides, ElementsAre("batch.configs=8"));
}

TEST_F(SweepFileTest, ANumberOfSeedsCountsFromOne) {
  EXPECT_THAT(SweepFile::load(sweep("sweep: {seeds: 3}")).seeds, ElementsAre(1u, 2u, 3u));
  EXPECT_TRUE(SweepFile::load(sweep("")).seeds.empty());
}

TEST_F(SweepFileTest, UnknownAndConflictingKeysAreMistakes) {
  EXPECT_THAT(mistake("swep: {seeds: 3}"), HasSubstr("did you mean \"sweep\""));
  EXPECT_THAT(mistake("set: {optimizer.lr: 1}\nsweep: {over: {optimizer.lr: [1, 2]}}"),
              HasSubstr("is given in `set` or `each` as well"));
  EXPECT_THAT(mistake("each: {tiny: {lr: 1}}\nsweep: {over: {lr: [1, 2]}}"),
              HasSubstr("is given in `set` or `each` as well"));
  EXPECT_THAT(mistake("each: {other: {optimizer.lr: 1}}"),
              HasSubstr("\"each.other\" is the name of no file in `experiments`"));
  EXPECT_THAT(mistake("each: {tiny: {seed.init: 1}}"), HasSubstr("is set by `sweep.seeds`"));
  std::filesystem::create_directory(path("other"));
  write("other/tiny.yaml", "include: ../tiny.yaml\n");
  const auto twice = write("twice.yaml",
                           "name: twice\nexperiments: [tiny.yaml, other/tiny.yaml]\n"
                           "each: {tiny: {optimizer.lr: 1}}\n");
  EXPECT_THAT(message_of<ConfigError>([&] { SweepFile::load(twice); }),
              HasSubstr("\"each.tiny\" is the name of several files in `experiments`"));
  EXPECT_THAT(mistake("sweep: {over: {seed.init: [1, 2]}}"), HasSubstr("is set by `sweep.seeds`"));
  EXPECT_THAT(mistake("set: {ensemble.folds: 2}"), HasSubstr("is set by `sweep.folds`"));
  EXPECT_THAT(mistake("sweep: {over: {dist.threads: [1, 2]}}"),
              HasSubstr("changes no trained number"));
  EXPECT_THAT(mistake("set: {seed: {init: 2}}"), HasSubstr("\"set.seed.init\" is set by"));
  for (const char* folds : {"1", "1025", "few", "2.5"})
    EXPECT_THAT(mistake(std::string("sweep: {folds: ") + folds + "}"),
                HasSubstr("must be `none` or a number of folds from 2 to 1024"));
  EXPECT_THAT(mistake("sweep: {seeds: [1, 1]}"), HasSubstr("names a seed twice"));
  EXPECT_THAT(mistake("sweep: {seeds: [1, 2000000000000]}"),
              HasSubstr("sweep.yaml:3:20: \"sweep.seeds.1\" must be between"));
  EXPECT_THAT(mistake("halving: {rungs: 2}"), HasSubstr("needs a score to go by"));
  for (const char* sweep : {"", "\nsweep: {folds: none}"})
    EXPECT_THAT(mistake(std::string("choose: {by: out_of_fold}") + sweep),
                HasSubstr("give a number of `sweep.folds`"));
  EXPECT_THAT(mistake("choose: {by: valid, seeds: 2}"), HasSubstr("must be between 3 and 1000"));
  EXPECT_THAT(mistake("sweep: {draws: {count: 2}}"), HasSubstr("draws nothing"));
  // All at once, with their places.
  EXPECT_THAT(mistake("sweep: {seeds: 0}\nplacement: apart"),
              AllOf(HasSubstr("sweep.yaml:3:"), HasSubstr("sweep.yaml:4:")));
}

TEST_F(SweepFileTest, ShippedSweepsLoad) {
  int files = 0;
  const auto experiments = source_folder() / "experiments";
  for (const auto& entry : std::filesystem::directory_iterator(experiments / "sweeps")) {
    if (entry.is_directory()) continue;
    const SweepFile sweep = SweepFile::load(entry.path());
    EXPECT_EQ(sweep.name, entry.path().stem().string());
    for (std::size_t i = 0; i < sweep.experiments.size(); ++i)
      EXPECT_NO_THROW(
          load_experiment(sweep.experiments[i], sweep.overrides_of(static_cast<int>(i))))
          << sweep.name;
    ++files;
  }
  EXPECT_GE(files, 2);
  const SweepFile all = SweepFile::load(experiments / "all.yaml");
  std::set<std::string> collections;
  for (const auto& path : all.experiments)
    collections.insert(load_experiment(path).data.collection.name);
  EXPECT_EQ(collections.size(), 5u);
}

TEST_F(SweepFileTest, NamesAMissingExperiment) {
  const auto file = write("other.yaml", "name: x\nexperiments: [tiny.yaml, none.yaml]\n");
  EXPECT_THAT(message_of<ConfigError>([&] { SweepFile::load(file); }),
              HasSubstr(path("none.yaml").string() + ", which is no file"));
}

std::vector<SweptKey> read(const std::string& over) {
  ConfigDocument document = ConfigDocument::parse("over: " + over, "sweep.yaml");
  std::vector<SweptKey> keys = read_swept_keys(document.root().child("over"));
  document.finish();
  return keys;
}

std::string mistake(const std::string& over) {
  return message_of<ConfigError>([&] { read(over); });
}

TEST(ParameterValues, ListsKeepValuesOfAnyKind) {
  const auto keys = read(
      "{optimizer.lr: [1e-3, 0.01], model.blocks: [[{layer: sage, width: 8}]], "
      "loss.list_mle.clip_norm: [.inf, 500], data.include.train: [['a*', b]]}");
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_EQ(keys[0].key, "optimizer.lr");
  EXPECT_THAT(keys[0].values, ElementsAre("1e-3", "0.01"));
  EXPECT_THAT(keys[1].values, ElementsAre("[{layer: sage, width: 8}]"));
  EXPECT_THAT(keys[2].values, ElementsAre(".inf", "500"));
  EXPECT_THAT(keys[3].values, ElementsAre("[\"a*\", b]"));
}

TEST(ParameterValues, DrawnVariantsTakeOneOfEachList) {
  const auto keys = read("{a: [left, right], b: [left, right]}");
  int left = 0, alike = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string value = drawn_value(keys[0], 1, i);
    ASSERT_TRUE(value == "left" || value == "right");
    if (value == "left") ++left;
    if (value == drawn_value(keys[1], 1, i)) ++alike;
  }
  EXPECT_NEAR(left, 100, 30);  // four standard deviations
  EXPECT_NEAR(alike, 100, 30);
}

TEST(ParameterValues, MistakesNameTheKey) {
  EXPECT_THAT(mistake("{a: []}"), HasSubstr("\"over.a\" has no values"));
  EXPECT_THAT(mistake("{a: 3}"), HasSubstr("\"over.a\" must be a list"));
  EXPECT_THAT(mistake("{a: {}}"), HasSubstr("\"over.a\" must be a list"));
}

}  // namespace
}  // namespace tpudist::test
