// `tpudist ensemble` on predictions, and `predict --scores`, as a user calls them.

#include <fstream>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/tiny_folder.hpp"
#include "tests/results/scores/predictions_case.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

// Two runs of other seeds, each of two members over two folds.
class EnsembleCommand : public TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=2", "train.last_evaluation=none"});
    train("a", "predictions.rows=all");
    train("b", "predictions.rows=all seed.init=2 seed.order=2");
  }
};

TEST_F(EnsembleCommand, TakesFilesOfPredictionsForTheirRuns) {
  output_of(call("ensemble --out-of-fold a b --keep-all --json both.json"));
  output_of(call("ensemble a/predictions.h5 b/predictions.h5 --keep-all --json files.json"));
  EXPECT_EQ(read_text_file(*folder_ / "files.json"), read_text_file(*folder_ / "both.json"));
}

TEST_F(EnsembleCommand, NamesWhatIsMissing) {
  train("without", "seed.init=3");
  train("half", "seed.init=4 predictions.rows=all ensemble.members=1");
  std::ofstream(*folder_ / "damaged.h5") << "no HDF5";
  EXPECT_THAT(output_of(call("ensemble --out-of-fold a without"), 2),
              HasSubstr("without: the run has no predictions.h5; write it with"));
  EXPECT_THAT(call("ensemble --out-of-fold a half").output,
              HasSubstr("tiny seed 4/1 members 0-1: the member of fold 1 is missing"));
  EXPECT_THAT(output_of(call("ensemble a/predictions.h5 damaged.h5"), 3),
              HasSubstr("damaged.h5: damaged or cut short"));
  EXPECT_EQ(call("ensemble a nowhere --split valid").exit_code, 2);

  EXPECT_THAT(
      output_of(call(
          "ensemble --out-of-fold a without half damaged.h5 nowhere --keep-all --min-members 1")),
      AllOf(HasSubstr("left out: without: the run has no predictions.h5"),
            HasSubstr("left out  tiny seed 4/1 members 0-1")));
  EXPECT_THAT(call("ensemble --out-of-fold a half --min-members 2").output,
              HasSubstr("complete over all folds: 1 column; but --min-members asks for 2"));
  EXPECT_EQ(call("ensemble a nowhere --split valid --min-members 2 --keep-all").exit_code, 0);
  EXPECT_THAT(call("ensemble a nowhere --split valid --min-members 3").output,
              HasSubstr("2 members left, but --min-members asks for 3"));
}

TEST_F(EnsembleCommand, RefusesFilesWhoseCollectionsOverlap) {
  PredictionsCase("layout:xla:default+layout:xla:random").write(*folder_ / "list.h5");
  EXPECT_EQ(
      output_of(call("ensemble a/predictions.h5 list.h5 --quiet"), 2),
      "tpudist: error: a/predictions.h5 is of layout:xla:random, and list.h5 of "
      "layout:xla:default+layout:xla:random: both score the graphs of layout:xla:random, but "
      "only members of the same collections are combined; give those of each by themselves\n");
}

TEST_F(EnsembleCommand, RefusesOneTrainingGivenTwice) {
  fs::copy(*folder_ / "a", *folder_ / "copy", fs::copy_options::recursive);
  fs::create_directory_symlink(*folder_ / "a", *folder_ / "link");
  for (const std::string other : {"a", "copy", "link"}) {
    EXPECT_EQ(output_of(call("ensemble a " + other + " --split valid --quiet"), 2),
              "tpudist: error: " + other +
                  " member 0 has the weights of a member 0: it is one training given "
                  "twice; give it once\n");
    EXPECT_THAT(output_of(call("ensemble --out-of-fold a " + other), 2),
                HasSubstr(other + "/predictions.h5, with the same weights; give it once"));
  }
}

// Two imports of an experiment have its seeds, and are told apart by their files and folders.
TEST_F(EnsembleCommand, TakesTwoImportsForTwoMembers) {
  for (const std::string run : {"a", "b"}) {
    ASSERT_EQ(call("weights export " + run + " " + run + ".st --member 0").exit_code, 0);
    output_of(call("weights import tiny.yaml " + run +
                   ".st ensemble.members=1 ensemble.folds=none --run-dir w" + run));
    ASSERT_EQ(
        call("predict w" + run + " --split valid --csv w.csv --scores " + run + ".h5").exit_code,
        0);
  }
  EXPECT_THAT(output_of(call("ensemble a.h5 b.h5")),
              AllOf(HasSubstr("\na.h5 member 0 "), HasSubstr("\nb.h5 member 0 "),
                    HasSubstr("jackknife of 2 trainings")));
  EXPECT_THAT(output_of(call("ensemble wa wb --split valid")),
              AllOf(HasSubstr("\nwa member 0 "), HasSubstr("\nwb member 0 ")));
}

TEST_F(EnsembleCommand, WritesScoresThatItTakes) {
  output_of(call("predict a --split valid --csv ranking.csv --scores scores.h5 --keep-all"));
  // A submission may go to standard output, with nothing else.
  const Outcome piped = run_program("predict a --csv /dev/stdout 2>/dev/null",
                                    "cd " + folder_->path().string() + " && ");
  EXPECT_TRUE(piped.output.starts_with("ID,TopConfigs\n")) << piped.output;
  EXPECT_THAT(output_of(call("ensemble scores.h5 --keep-all")), HasSubstr("valid split"));
  EXPECT_THAT(call("ensemble scores.h5 --csv x.csv").output, HasSubstr("--csv and --scores need"));
}

}  // namespace
}  // namespace tpudist::test
