#include "launch/sweep/sweep_file.hpp"

#include <filesystem>
#include <set>

#include "core/error.hpp"
#include "tests/launch/sweep/sweep_case.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/thrown.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist::test {
namespace {

std::string mistake(const SweepCase& files, const std::string& text) {
  return test::message_of<ConfigError>([&] { SweepFile::load(files.sweep(text)); });
}

TEST(SweepFileTest, ReadsEverything) {
  const SweepCase files;
  const SweepFile sweep = SweepFile::load(files.sweep(R"(
set: {train.steps: 9, optimizer.decay: {all: 0.1}}
sweep: {seeds: [4, 2], folds: 3, draws: {count: 5, seed: 2}, over: {optimizer.lr: {log_uniform: [1e-4, 1e-3]}}}
placement: split
halving: {rungs: 2, keep: 4}
choose: {by: out_of_fold, seeds: 4, set: {batch.configs: 8}}
)"));
  EXPECT_EQ(sweep.name, "case");
  EXPECT_THAT(sweep.experiments, ElementsAre(files.path("tiny.yaml")));
  EXPECT_THAT(sweep.overrides, ElementsAre("train.steps=9", "optimizer.decay.all=0.1"));
  EXPECT_THAT(sweep.seeds, ElementsAre(4u, 2u));
  EXPECT_EQ(sweep.folds, 3);
  EXPECT_EQ(sweep.draws, 5);
  EXPECT_TRUE(sweep.split);
  EXPECT_EQ(sweep.rungs, 2);
  EXPECT_EQ(sweep.keep, 4);
  EXPECT_EQ(sweep.choice, ChoiceScore::out_of_fold);
  EXPECT_EQ(sweep.fresh_seeds, 4);
  EXPECT_THAT(sweep.confirm_overrides, ElementsAre("batch.configs=8"));
}

TEST(SweepFileTest, ANumberOfSeedsCountsFromOne) {
  const SweepCase files;
  EXPECT_THAT(SweepFile::load(files.sweep("sweep: {seeds: 3}")).seeds, ElementsAre(1u, 2u, 3u));
  EXPECT_TRUE(SweepFile::load(files.sweep("")).seeds.empty());
}

TEST(SweepFileTest, UnknownAndConflictingKeysAreMistakes) {
  const SweepCase files;
  EXPECT_THAT(mistake(files, "swep: {seeds: 3}"), HasSubstr("did you mean \"sweep\""));
  EXPECT_THAT(mistake(files, "set: {optimizer.lr: 1}\nsweep: {over: {optimizer.lr: [1, 2]}}"),
              HasSubstr("is given in `set` or `each` as well"));
  EXPECT_THAT(mistake(files, "each: {tiny: {lr: 1}}\nsweep: {over: {lr: [1, 2]}}"),
              HasSubstr("is given in `set` or `each` as well"));
  EXPECT_THAT(mistake(files, "each: {other: {optimizer.lr: 1}}"),
              HasSubstr("\"each.other\" is the name of no file in `experiments`"));
  EXPECT_THAT(mistake(files, "each: {tiny: {seed.init: 1}}"), HasSubstr("is set by `sweep.seeds`"));
  std::filesystem::create_directory(files.path("other"));
  files.write("other/tiny.yaml", "include: ../tiny.yaml\n");
  const auto twice = files.write("twice.yaml",
                                 "name: twice\nexperiments: [tiny.yaml, other/tiny.yaml]\n"
                                 "each: {tiny: {optimizer.lr: 1}}\n");
  EXPECT_THAT(test::message_of<ConfigError>([&] { SweepFile::load(twice); }),
              HasSubstr("\"each.tiny\" is the name of several files in `experiments`"));
  EXPECT_THAT(mistake(files, "sweep: {over: {seed.init: [1, 2]}}"),
              HasSubstr("is set by `sweep.seeds`"));
  EXPECT_THAT(mistake(files, "set: {ensemble.folds: 2}"), HasSubstr("is set by `sweep.folds`"));
  EXPECT_THAT(mistake(files, "sweep: {over: {dist.threads: [1, 2]}}"),
              HasSubstr("changes no trained number"));
  EXPECT_THAT(mistake(files, "set: {seed: {init: 2}}"), HasSubstr("\"set.seed.init\" is set by"));
  for (const char* folds : {"1", "1025", "few", "2.5"})
    EXPECT_THAT(mistake(files, std::string("sweep: {folds: ") + folds + "}"),
                HasSubstr("must be `none` or a number of folds from 2 to 1024"));
  EXPECT_THAT(mistake(files, "sweep: {seeds: [1, 1]}"), HasSubstr("names a seed twice"));
  EXPECT_THAT(mistake(files, "sweep: {seeds: [1, 2000000000000]}"),
              HasSubstr("sweep.yaml:3:20: \"sweep.seeds.1\" must be between"));
  EXPECT_THAT(mistake(files, "halving: {rungs: 2}"), HasSubstr("needs a score to go by"));
  for (const char* sweep : {"", "\nsweep: {folds: none}"})
    EXPECT_THAT(mistake(files, std::string("choose: {by: out_of_fold}") + sweep),
                HasSubstr("give a number of `sweep.folds`"));
  EXPECT_THAT(mistake(files, "choose: {by: valid, seeds: 2}"),
              HasSubstr("must be between 3 and 1000"));
  EXPECT_THAT(mistake(files, "sweep: {draws: {count: 2}}"), HasSubstr("draws nothing"));
  // All at once, with their places.
  EXPECT_THAT(mistake(files, "sweep: {seeds: 0}\nplacement: apart"),
              AllOf(HasSubstr("sweep.yaml:3:"), HasSubstr("sweep.yaml:4:")));
}

TEST(SweepFileTest, ShippedSweepsLoad) {
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

TEST(SweepFileTest, NamesAMissingExperiment) {
  const SweepCase files;
  const auto path = files.write("other.yaml", "name: x\nexperiments: [tiny.yaml, none.yaml]\n");
  EXPECT_THAT(message_of<ConfigError>([&] { SweepFile::load(path); }),
              HasSubstr(files.path("none.yaml").string() + ", which is no file"));
}

}  // namespace
}  // namespace tpudist::test
