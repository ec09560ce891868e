#include "launch/sweep/sweep_plan.hpp"

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "launch/sweep/sweep_folder.hpp"
#include "launch/sweep/sweep_tables.hpp"
#include "tests/launch/sweep/sweep_case.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist::test {
namespace {

class SweepPlanTest : public ::testing::Test, protected SweepCase {
 protected:
  SweepPlan plan_of(const std::string& text) const {
    return plan_sweep(SweepFile::load(sweep(text)));
  }
  void add_to_experiment(const std::string& text) const {
    std::ofstream(path("tiny.yaml"), std::ios::app) << text;
  }
  std::string refusal(const std::string& text) const {
    return message_of<ConfigError>([&] { plan_of(text); });
  }
};

Experiment experiment_of(const SweepRun& run) {
  ConfigDocument document = ConfigDocument::parse(run.config, "run");
  return read_experiment(document);
}

TEST_F(SweepPlanTest, ListsTheGridWithItsSeeds) {
  const SweepPlan plan = plan_of(R"(
set: {train.steps: 7}
sweep: {seeds: 2, over: {optimizer.lr: [1e-3, 1e-2], batch.configs: [4, 8]}}
)");
  EXPECT_THAT(
      plan.record.labels,
      ElementsAre("optimizer.lr=1e-3 batch.configs=4", "optimizer.lr=1e-3 batch.configs=8",
                  "optimizer.lr=1e-2 batch.configs=4", "optimizer.lr=1e-2 batch.configs=8"));
  ASSERT_EQ(plan.record.runs.size(), 8u);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < 8; ++i) {
    const SweepRun& run = plan.record.runs[i];
    const Experiment experiment = experiment_of(run);
    EXPECT_EQ(run.index, static_cast<int>(i));
    EXPECT_EQ(run.variant, static_cast<int>(i / 2));
    EXPECT_EQ(run.seed, i % 2 + 1);
    EXPECT_EQ(experiment.init_seed, i % 2 + 1);
    EXPECT_EQ(experiment.order_seed, i % 2 + 1);
    EXPECT_EQ(experiment.train.steps, 7);
    EXPECT_EQ(experiment.batch.configs, i / 2 % 2 == 0 ? 4 : 8);
    EXPECT_DOUBLE_EQ(experiment.optimizer.rate, i < 4 ? 1e-3 : 1e-2);
    ids.insert(run.id);
  }
  EXPECT_EQ(ids.size(), 8u);
}

// What decides the numbers, and nothing else, decides the id.
TEST_F(SweepPlanTest, IdsAreStable) {
  const SweepCase elsewhere;
  const auto ids = [](const SweepPlan& plan) {
    std::vector<std::string> list;
    for (const SweepRun& run : plan.record.runs) list.push_back(run.id);
    return list;
  };
  const auto expected = ids(plan_of("sweep: {seeds: 2}"));
  EXPECT_EQ(ids(plan_sweep(SweepFile::load(elsewhere.sweep("sweep: {seeds: 2}")))), expected);
  EXPECT_EQ(ids(plan_of("set: {name: other, train.log_every: 3}\nsweep: {seeds: 2}")), expected);
  EXPECT_EQ(ids(plan_of("sweep: {seeds: 3}"))[1], expected[1]);
  EXPECT_NE(ids(plan_of("set: {train.steps: 5}\nsweep: {seeds: 2}"))[0], expected[0]);
}

TEST_F(SweepPlanTest, SplitsMembersIntoRunsOfTheirOwn) {
  const SweepPlan fused = plan_of("sweep: {seeds: 2, folds: 2}");
  ASSERT_EQ(fused.record.runs.size(), 2u);
  EXPECT_EQ(fused.record.runs[0].members, 2);
  const SweepPlan split = plan_of("sweep: {seeds: 2, folds: 2}\nplacement: split");
  ASSERT_EQ(split.record.runs.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const SweepRun& run = split.record.runs[i];
    const EnsembleConfig ensemble = experiment_of(run).ensemble;
    EXPECT_EQ(run.first_member, i % 2);
    EXPECT_EQ(ensemble.members, 1);
    EXPECT_EQ(ensemble.first_member, i % 2);
    EXPECT_EQ(ensemble.held_out_fold(0), i % 2);
    EXPECT_EQ(run.folds, 2);
  }
}

TEST_F(SweepPlanTest, CountsMembersFromTheFirstOneOfTheExperiment) {
  add_to_experiment("ensemble: {members: 2, first_member: 3}\n");
  EXPECT_EQ(plan_of("sweep: {seeds: 1}").record.runs[0].first_member, 3);
  const SweepPlan split = plan_of("sweep: {seeds: 1}\nplacement: split");
  ASSERT_EQ(split.record.runs.size(), 2u);
  EXPECT_EQ(split.record.runs[1].first_member, 4);
  EXPECT_EQ(experiment_of(split.record.runs[1]).ensemble.number_of(0), 4);
}

TEST_F(SweepPlanTest, ChoosesNothingByGraphsThatRunsTrainOn) {
  const std::string over =
      "set: {ensemble.fold_over: train+valid, predictions.rows: 5}\n"
      "sweep: {folds: 2}\n";
  EXPECT_EQ(plan_of(over).record.runs.size(), 1u);
  EXPECT_THAT(refusal(over + "choose: {by: out_of_fold}"), HasSubstr("ensemble.fold_over=train"));
}

TEST_F(SweepPlanTest, HalvingTrainsFewerVariantsForMoreSteps) {
  const SweepPlan plan = plan_of(R"(
set: {train.steps: 10}
sweep: {seeds: 2, over: {optimizer.lr: [1e-4, 2e-4, 3e-4, 4e-4, 5e-4]}}
halving: {rungs: 3, keep: 2}
choose: {by: valid}
)");
  ASSERT_EQ(plan.record.stages.size(), 4u);
  EXPECT_EQ(plan.record.stages[0].count, 10);
  EXPECT_EQ(plan.record.stages[1].first, 10);
  EXPECT_EQ(plan.record.stages[1].count, 6);  // 3 variants
  EXPECT_EQ(plan.record.stages[2].count, 4);  // 2 variants
  EXPECT_EQ(plan.record.stages[3].first, 20);
  EXPECT_EQ(plan.record.stages[3].count, 6);  // fresh seeds of the best and of the baseline
  EXPECT_EQ(experiment_of(plan.record.runs[0]).train.steps, 3);  // 10 / 4, rounded up
  EXPECT_EQ(experiment_of(runs_of_stage(plan, 1, {4, 0, 2})[0]).train.steps, 5);
  const auto last = runs_of_stage(plan, 2, {4, 2});
  ASSERT_EQ(last.size(), 4u);
  EXPECT_EQ(experiment_of(last[3]).train.steps, 10);
  EXPECT_EQ(last[3].index, 19);
  EXPECT_EQ(last[3].variant, 2);
}

// What was chosen is confirmed by seeds, and on validation families, that did not choose it.
TEST_F(SweepPlanTest, ConfirmsWithFreshSeedsOnOtherGraphs) {
  const SweepPlan plan = plan_of(
      "sweep: {seeds: [1, 7], over: {optimizer.lr: [1, 2]}}\nchoose: {by: valid, seeds: 3}");
  const auto confirming = runs_of_stage(plan, 1, {1});
  ASSERT_EQ(confirming.size(), 3u);
  EXPECT_EQ(confirming[0].seed, 8u);
  EXPECT_EQ(confirming[2].seed, 10u);
  const auto search = experiment_of(plan.record.runs[0]).data.exclude_valid;
  const auto confirm = experiment_of(confirming[0]).data.exclude_valid;
  ASSERT_FALSE(search.empty());
  ASSERT_FALSE(confirm.empty());
  for (const std::string& name : search) EXPECT_THAT(confirm, Not(Contains(name)));
  EXPECT_EQ(plan.record.confirmed_on, "validation families that did not choose it");

  const SweepPlan same =
      plan_of("sweep: {over: {optimizer.lr: [1, 2]}}\nchoose: {by: valid, graphs: all}");
  EXPECT_TRUE(experiment_of(same.record.runs[0]).data.exclude_valid.empty());
  EXPECT_EQ(same.record.confirmed_on, "the same graphs that chose it");
}

TEST_F(SweepPlanTest, NothingIsChosenBetweenVariantsThatAreScoredOnOtherGraphs) {
  const std::string collections =
      "sweep: {seeds: 2, over: {data.collection: ['layout:xla:random', 'layout:nlp:random']}}\n";
  const std::string graphs = "sweep: {over: {data.include.valid: [['conv*'], ['attention*']]}}\n";
  const std::string choose = "choose: {by: valid, graphs: all}\n";
  EXPECT_THAT(refusal(collections + choose),
              AllOf(HasSubstr("variants 0 (data.collection=layout:xla:random) and 1 ("),
                    HasSubstr("data.collection is layout:xla:random and layout:nlp:random")));
  EXPECT_THAT(refusal(graphs + choose), HasSubstr("the scored graphs differ"));
  EXPECT_THAT(plan_of(collections).record.variant_group, ElementsAre(0, 1));
  EXPECT_THAT(plan_of(graphs).record.variant_group, ElementsAre(0, 1));
  // What members train on may differ, and patterns that come to the same graphs are the same.
  EXPECT_THAT(plan_of("sweep: {over: {data.exclude.train: [[], ['*none*']], "
                      "data.include.valid: [[], ['*']]}}\n" +
                      choose)
                  .record.variant_group,
              ElementsAre(0, 0, 0, 0));
}

TEST_F(SweepPlanTest, WhatConfirmsIsWhatWasChosenOnTheDataThatChoseIt) {
  for (const std::string key : {"optimizer.lr: 3", "optimizer: {lr: 3}", "optimizer.decay.all: 2",
                                "data.collection: 'layout:nlp:random'", "data: {shards: x}"})
    EXPECT_THAT(refusal("sweep: {over: {optimizer.lr: [1, 2], optimizer.decay: [{all: 0}, "
                        "{all: 1}]}}\nchoose: {by: valid, graphs: all, set: {" +
                        key + "}}"),
                AllOf(HasSubstr("sweep.yaml:4:"),
                      HasSubstr("is confirmed as it is, on the data that chose it")));
}

// Their out-of-fold scores would be of members that held other graphs out.
TEST_F(SweepPlanTest, NothingIsChosenAcrossOtherFolds) {
  add_to_experiment("ensemble: {members: 2, folds: 2, vary: [init, fold]}\n");
  const std::string seeds =
      "set: {predictions.rows: all}\nsweep: {folds: 2, over: "
      "{ensemble.fold_seed: [1, 2, 3, 4, 5, 6]}}\n";
  EXPECT_THAT(refusal(seeds + "choose: {by: out_of_fold}"),
              HasSubstr("or the folds in which they lie"));
  EXPECT_GT(std::ranges::max(plan_of(seeds).record.variant_group), 0);
}

TEST_F(SweepPlanTest, WhatConfirmsIsOnTheOtherHalf) {
  EXPECT_THAT(refusal("choose: {by: valid, set: {data.exclude.valid: []}}"),
              HasSubstr("give `graphs: all`"));
}

TEST_F(SweepPlanTest, EqualRunsAreRefused) {
  EXPECT_THAT(
      refusal("sweep: {over: {optimizer.lr: [0.001, 1e-3]}}"),
      AllOf(HasSubstr("runs 0 and 1 of the sweep are equal"), HasSubstr("optimizer.lr=1e-3")));
}

TEST_F(SweepPlanTest, RunsThatAreComparedMustBeScored) {
  EXPECT_THAT(refusal("sweep: {folds: 2}\nchoose: {by: out_of_fold}"),
              HasSubstr("set predictions.rows"));
  EXPECT_THAT(refusal("set: {train.last_evaluation: none}\nchoose: {by: valid}"),
              HasSubstr("set train.last_evaluation"));
  EXPECT_EQ(refusal("set: {predictions.rows: 10}\nsweep: {folds: 2}\nchoose: {by: out_of_fold}"),
            "");
  // The runs that confirm, too, which train only after the search.
  EXPECT_THAT(
      refusal("set: {predictions.rows: 10, train.last_evaluation: none}\nsweep: {folds: 2}\n"
              "choose: {by: out_of_fold}"),
      HasSubstr("set train.last_evaluation"));
  EXPECT_THAT(refusal("choose: {by: valid, set: {train.last_evaluation: none}}"),
              HasSubstr("set train.last_evaluation"));
  EXPECT_THAT(refusal("sweep: {seeds: [1099511627776]}\nchoose: {by: valid}"),
              HasSubstr("\"seed.init\" must be between 0 and 1099511627776"));
}

TEST_F(SweepPlanTest, MembersThatAreAddedToConfirmAreRunsOfTheirOwn) {
  const SweepPlan plan =
      plan_of("choose: {by: valid, seeds: 3, set: {ensemble.members: 8}}\nplacement: split");
  EXPECT_EQ(plan.record.stages.back().count, 24);
  EXPECT_EQ(runs_of_stage(plan, 1, {0}).size(), 24u);
}

TEST_F(SweepPlanTest, ManyRungsBeginWithOneStep) {
  const SweepPlan plan = plan_of(
      "sweep: {over: {optimizer.lr: [1e-4, 2e-4]}}\n"
      "halving: {rungs: 20, keep: 10}\nchoose: {by: valid}");
  EXPECT_EQ(experiment_of(plan.record.runs[0]).train.steps, 1);
  EXPECT_EQ(plan.record.stages[0].step_divisor, std::int64_t{1} << 40);
  EXPECT_EQ(plan.record.stages[19].step_divisor, 1);
}

TEST_F(SweepPlanTest, AMistakeOfAnExperimentNamesTheVariant) {
  EXPECT_THAT(refusal("sweep: {over: {optimizer.lrr: [1, 2]}}"),
              AllOf(HasSubstr("sweep.yaml:3:"),
                    HasSubstr("\"sweep.over.optimizer.lrr\" is wrong in the variants "
                              "optimizer.lrr=1, optimizer.lrr=2: "),
                    HasSubstr("did you mean \"lr\"")));
}

// All of them at once, each with its place.
TEST_F(SweepPlanTest, MistakesOfValuesHaveThePlaceOfTheSweepFile) {
  const std::string text = refusal(
      "set: {train.stepz: 3}\nsweep: {over: {optimizer.lr: [1e-3, .nan, x], "
      "batch.configs: [4, 0]}}\nchoose: {by: valid, set: {train.steps: none}}");
  EXPECT_THAT(text,
              AllOf(HasSubstr("sweep.yaml:3:"), HasSubstr("\"set.train.stepz\" is wrong in"),
                    HasSubstr("sweep.yaml:4:"), HasSubstr("must be a number, but is \".nan\""),
                    HasSubstr("must be a number, but is \"x\"")));
  EXPECT_THAT(text, AllOf(HasSubstr("\"sweep.over.batch.configs\""), Not(HasSubstr("command line")),
                          Not(HasSubstr("quoted text \".nan"))));
  EXPECT_THAT(refusal("choose: {by: valid, set: {train.steps: none}}"),
              HasSubstr("\"choose.set.train.steps\" is wrong in the variant "));
}

TEST_F(SweepPlanTest, SeveralExperimentsAreVariantsOfTheirOwn) {
  write("second.yaml", "include: tiny.yaml\ndata: {collection: 'layout:nlp:random'}\n");
  const auto path =
      write("all.yaml", "name: all\nexperiments: [tiny.yaml, second.yaml]\nsweep: {seeds: 1}\n");
  const SweepPlan plan = plan_sweep(SweepFile::load(path));
  EXPECT_THAT(plan.record.labels, ElementsAre("tiny", "second"));
  ASSERT_EQ(plan.record.runs.size(), 2u);
  EXPECT_EQ(plan.record.runs[0].collection, "layout:xla:random");
  EXPECT_EQ(plan.record.runs[1].collection, "layout:nlp:random");
}

TEST_F(SweepPlanTest, WithoutFoldsOneMemberTrainsOnAllGraphs) {
  const SweepPlan plan = plan_of(
      "set: {ensemble: {members: 4, vary: [init, order], fold_file: "
      "none.yaml, fold_over: train+valid}}\n"
      "sweep: {seeds: 1, folds: none}");
  ASSERT_EQ(plan.record.runs.size(), 1u);
  const EnsembleConfig ensemble = experiment_of(plan.record.runs[0]).ensemble;
  EXPECT_EQ(ensemble.members, 1);
  EXPECT_EQ(ensemble.folds, 0);
}

TEST_F(SweepPlanTest, AnExperimentTakesItsOwnValuesAfterThoseOfAll) {
  write("second.yaml", "include: tiny.yaml\ndata: {collection: 'layout:nlp:random'}\n");
  const auto file = write("all.yaml",
                          "name: all\nexperiments: [tiny.yaml, second.yaml]\n"
                          "set: {train.steps: 7}\neach: {second: {train: {steps: 3}}}\n"
                          "sweep: {seeds: 1}\n");
  const auto steps = [](const SweepFile& file) {
    std::vector<std::int64_t> steps;
    for (const SweepRun& run : plan_sweep(file).record.runs)
      steps.push_back(experiment_of(run).train.steps);
    return steps;
  };
  EXPECT_THAT(steps(SweepFile::load(file)), ElementsAre(7, 3));
  // The folder keeps them for its later stages.
  const SweepFolder folder = SweepFolder::expand(file, {}, path("sweep"));
  EXPECT_THAT(steps(SweepFile::load(path("sweep") / "sweep.yaml")), ElementsAre(7, 3));
  write("all.yaml",
        "name: all\nexperiments: [tiny.yaml, second.yaml]\n"
        "each: {second: {train.steps: x}}\n");
  EXPECT_THAT(message_of<ConfigError>([&] { plan_sweep(SweepFile::load(file)); }),
              HasSubstr("all.yaml:3:"));
}

TEST_F(SweepPlanTest, ItsOutlookSaysWhatRunsAndFamiliesCanShow) {
  const auto outlook = [&](const std::string& text) { return outlook_text(plan_of(text).record); };
  EXPECT_EQ(outlook("sweep: {seeds: 3}\n"), "");  // nothing to compare
  EXPECT_THAT(outlook("sweep: {over: {optimizer.lr: [1, 2]}}\n"),
              HasSubstr("1 training of each of 2 variants"));
  const std::string three = outlook("sweep: {seeds: 3, over: {optimizer.lr: [1, 2, 3]}}\n");
  EXPECT_THAT(
      three,
      AllOf(HasSubstr("3 trainings of each of 3 variants: on these graphs a difference of 4.4 SD "
                      "between trainings is found in 8 of 10 sweeps (all 3 pairs at once)"),
            HasSubstr("validation graphs: ")));
}

}  // namespace
}  // namespace tpudist::test
