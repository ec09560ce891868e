// `tpudist ensemble` on predictions, and `predict --scores`, as a user calls them.

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/tiny_folder.hpp"
#include "tests/results/scores/predictions_case.hpp"

namespace tpudist {
namespace {

using test::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

// Two runs of other seeds, each of two members over two folds.
class EnsembleCommand : public test::TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=2", "train.last_evaluation=none"});
    train("a", "predictions.rows=all");
    train("b", "predictions.rows=all seed.init=2 seed.order=2");
  }
};

TEST_F(EnsembleCommand, CombinesPredictionsOutOfFold) {
  const Outcome outcome = call("ensemble --out-of-fold a b --keep-all --json both.json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("training graphs, out of fold"), HasSubstr("valid split"),
                    HasSubstr("tiny seed 1/1 members 0-1"), HasSubstr("tiny seed 2/2 members 0-1"),
                    HasSubstr("combined by z_score, no member rejected")));
  const auto json = nlohmann::json::parse(read_text_file(*folder_ / "both.json"));
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0].at("tables")[0].at("columns").size(), 2u);
  EXPECT_EQ(json[0].at("tables")[0].at("graphs").size(), 5u);
  EXPECT_EQ(json[0].at("tables")[1].at("columns").size(), 4u);
  // Files stand for themselves.
  const Outcome files =
      call("ensemble a/predictions.h5 b/predictions.h5 --keep-all --json files.json");
  ASSERT_EQ(files.exit_code, 0) << files.output;
  EXPECT_EQ(nlohmann::json::parse(read_text_file(*folder_ / "files.json")), json);
}

TEST_F(EnsembleCommand, NamesWhatIsMissing) {
  train("without", "seed.init=3");
  train("half", "seed.init=4 predictions.rows=all ensemble.members=1");
  std::ofstream(*folder_ / "damaged.h5") << "no HDF5";
  const Outcome without = call("ensemble --out-of-fold a without");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.output, HasSubstr("without: the run has no predictions.h5; write it with"));
  EXPECT_THAT(call("ensemble --out-of-fold a half").output,
              HasSubstr("tiny seed 4/1 members 0-1: the member of fold 1 is missing"));
  const Outcome damaged = call("ensemble a/predictions.h5 damaged.h5");
  EXPECT_EQ(damaged.exit_code, 3);
  EXPECT_THAT(damaged.output, HasSubstr("damaged.h5: damaged or cut short"));
  EXPECT_EQ(call("ensemble a nowhere --split valid").exit_code, 2);

  const Outcome rest =
      call("ensemble --out-of-fold a without half damaged.h5 nowhere --keep-all --min-members 1");
  EXPECT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_THAT(rest.output, AllOf(HasSubstr("left out: without: the run has no predictions.h5"),
                                 HasSubstr("left out  tiny seed 4/1 members 0-1")));
  EXPECT_THAT(call("ensemble --out-of-fold a half --min-members 2").output,
              HasSubstr("complete over all folds: 1 column; but --min-members asks for 2"));
  EXPECT_EQ(call("ensemble a nowhere --split valid --min-members 2 --keep-all").exit_code, 0);
  EXPECT_THAT(call("ensemble a nowhere --split valid --min-members 3").output,
              HasSubstr("2 members left, but --min-members asks for 3"));
}

TEST_F(EnsembleCommand, RefusesFilesWhoseCollectionsOverlap) {
  test::PredictionsCase("layout:xla:default+layout:xla:random").write(*folder_ / "list.h5");
  const Outcome refused = call("ensemble a/predictions.h5 list.h5 --quiet");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(
      refused.output,
      "tpudist: error: a/predictions.h5 is of layout:xla:random, and list.h5 of "
      "layout:xla:default+layout:xla:random: both score the graphs of layout:xla:random, but "
      "only members of the same collections are combined; give those of each by themselves\n");
}

TEST_F(EnsembleCommand, RefusesOneTrainingGivenTwice) {
  fs::copy(*folder_ / "a", *folder_ / "copy", fs::copy_options::recursive);
  fs::create_directory_symlink(*folder_ / "a", *folder_ / "link");
  for (const std::string other : {"a", "copy", "link"}) {
    const Outcome runs = call("ensemble a " + other + " --split valid --quiet");
    EXPECT_EQ(runs.exit_code, 2);
    EXPECT_EQ(runs.output, "tpudist: error: " + other +
                               " member 0 has the weights of a member 0: it is one training given "
                               "twice; give it once\n");
    const Outcome files = call("ensemble --out-of-fold a " + other);
    EXPECT_EQ(files.exit_code, 2);
    EXPECT_THAT(files.output,
                HasSubstr(other + "/predictions.h5, with the same weights; give it once"));
  }
}

// Two imports of an experiment have its seeds, and are told apart by their files and folders.
TEST_F(EnsembleCommand, TakesTwoImportsForTwoMembers) {
  for (const std::string run : {"a", "b"}) {
    ASSERT_EQ(call("weights export " + run + " " + run + ".st --member 0").exit_code, 0);
    const Outcome imported = call("weights import tiny.yaml " + run +
                                  ".st ensemble.members=1 ensemble.folds=none --run-dir w" + run);
    ASSERT_EQ(imported.exit_code, 0) << imported.output;
    ASSERT_EQ(
        call("predict w" + run + " --split valid --csv w.csv --scores " + run + ".h5").exit_code,
        0);
  }
  const Outcome files = call("ensemble a.h5 b.h5");
  EXPECT_EQ(files.exit_code, 0) << files.output;
  EXPECT_THAT(files.output, AllOf(HasSubstr("\na.h5 member 0 "), HasSubstr("\nb.h5 member 0 "),
                                  HasSubstr("jackknife of 2 trainings")));
  const Outcome runs = call("ensemble wa wb --split valid");
  EXPECT_EQ(runs.exit_code, 0) << runs.output;
  EXPECT_THAT(runs.output, AllOf(HasSubstr("\nwa member 0 "), HasSubstr("\nwb member 0 ")));
}

// Out of fold each run is a column; both have one name.
TEST_F(EnsembleCommand, SaysWhatItsScoresAndIntervalsAreOf) {
  const Outcome two = call("ensemble --out-of-fold a b --keep-all");
  EXPECT_THAT(two.output, AllOf(HasSubstr("members together  "), HasSubstr("mean of members   "),
                                HasSubstr("jackknife of 2 trainings"),
                                Not(HasSubstr("other members of this training"))));
  const Outcome one = call("evaluate a --keep-all");
  EXPECT_THAT(one.output, AllOf(HasSubstr("members together  "), HasSubstr("mean of members   "),
                                HasSubstr("other members of this training"),
                                HasSubstr("one training does not show how others would score"),
                                Not(HasSubstr("if trained again"))));
}

TEST_F(EnsembleCommand, ChoosesOnTheValidationSplitForTheTestSplit) {
  const Outcome outcome = call("ensemble a b --select greedy --keep-all --csv chosen.csv");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("chosen on the validation split"),
                                    HasSubstr("greedy selection"), HasSubstr("wrote chosen.csv")));
}

TEST_F(EnsembleCommand, WritesScoresThatItTakes) {
  const Outcome outcome =
      call("predict a --split valid --csv ranking.csv --scores scores.h5 --keep-all");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  // A submission may go to standard output, with nothing else.
  const Outcome piped = test::run_program("predict a --csv /dev/stdout 2>/dev/null",
                                          "cd " + folder_->path().string() + " && ");
  EXPECT_TRUE(piped.output.starts_with("ID,TopConfigs\n")) << piped.output;
  const Outcome again = call("ensemble scores.h5 --keep-all");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("valid split"));
  EXPECT_THAT(call("ensemble scores.h5 --csv x.csv").output, HasSubstr("--csv and --scores need"));
}

}  // namespace
}  // namespace tpudist
