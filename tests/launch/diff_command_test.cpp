// `tpudist diff` as a user calls it, on runs that the program trained.

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_system.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/launch/tiny_folder.hpp"
#include "tests/support/damage.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

class DiffCommand : public TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=6", "train.log_every=1", "train.checkpoint_every=2",
           "train.keep_checkpoints=3", "train.evaluate_every=3", "train.evaluate_rows=4",
           "train.last_evaluation=sampled"});
    train("base");
  }

  // A copy of the run `base`, for a test to change.
  static fs::path copy(const std::string& name) {
    fs::copy(*folder_ / "base", *folder_ / name, fs::copy_options::recursive);
    return *folder_ / name;
  }

  // Drops from metrics.jsonl the lines of steps from `step` on.
  static void cut_metrics(const fs::path& run, int step) {
    std::istringstream lines(read_text_file(run / "metrics.jsonl"));
    std::string kept;
    for (std::string line; std::getline(lines, line);)
      if (nlohmann::json::parse(line).at("step") < step) kept += line + "\n";
    write_file_atomically(run / "metrics.jsonl", kept);
  }

  // Changes a value of the n-th line of a kind in metrics.jsonl.
  static void change_line(const fs::path& run, const std::string& kind, int n,
                          const std::string& key, const nlohmann::json& value) {
    std::istringstream lines(read_text_file(run / "metrics.jsonl"));
    std::string changed;
    for (std::string line; std::getline(lines, line);) {
      auto record = nlohmann::json::parse(line);
      if (record.at("kind") == kind && n-- == 0) record[key] = value;
      changed += record.dump() + "\n";
    }
    ASSERT_LT(n, 0);
    write_file_atomically(run / "metrics.jsonl", changed);
  }

  // A copy of the run `base` that is resumed at step 4.
  static fs::path resumed(const std::string& name) {
    const fs::path run = copy(name);
    fs::remove(checkpoint_path(run / "checkpoints", 6));
    train(name, "--resume");
    return run;
  }
};

TEST_F(DiffCommand, FindsATrainingOnOtherThreadsEqual) {
  train("again", "dist.threads=2 train.log_every=2");
  EXPECT_THAT(
      output_of(call("diff base again")),
      AllOf(StartsWith("equal: 3 logged steps, 2 evaluations, 3 checkpoints, the parameters "
                       "that scored, up to step 6\n"),
            ContainsRegex("dist.threads +1 +2 +does not decide numbers\n"),
            ContainsRegex("ranks +1 x 1 thread +1 x 2 threads +differ, first at step 1\n"),
            ContainsRegex("parameters, step 6 +[0-9a-f]{16} +[0-9a-f]{16} +equal\n")));
}

TEST_F(DiffCommand, FindsAResumedRunEqual) {
  resumed("resumed");
  EXPECT_THAT(call("diff base resumed").output,
              AllOf(StartsWith("equal: 6 logged steps, "), ContainsRegex("program .* equal\n"),
                    ContainsRegex("LibTorch .* equal\n"), ContainsRegex("kernels .* equal\n"),
                    ContainsRegex("device +CPU +CPU +equal\n")));
}

TEST_F(DiffCommand, NamesTheFirstStepOfAnotherProgram) {
  change_line(resumed("began_elsewhere"), "start", 0, "commit", "older");
  EXPECT_THAT(output_of(call("diff base began_elsewhere")),
              ContainsRegex("program .*\\(older\\) +differ, first at step 1\n"));

  const fs::path run = resumed("went_elsewhere");
  change_line(run, "start", 1, "libtorch", "1.0");
  EXPECT_THAT(
      output_of(call("diff base went_elsewhere")),
      AllOf(ContainsRegex("program .* equal\n"), ContainsRegex("LibTorch .* 1.0 +differ, first at "
                                                               "step 5\n")));
  // It explains only what comes after.
  change_line(run, "step", 5, "rate", 0.5);
  EXPECT_THAT(call("diff base went_elsewhere").output,
              HasSubstr(" and 0.5\n  settings, data and folds are equal; program or "
                        "processor differ from step 5 on, which may round differently\n"));
  change_line(run, "step", 1, "rate", 0.5);
  EXPECT_THAT(call("diff base went_elsewhere").output,
              HasSubstr("\n  settings, data and folds that are known are equal\n"));
}

TEST_F(DiffCommand, ComparesNoProgramThatIsNotKnown) {
  const fs::path run = resumed("older");
  change_line(run, "start", 0, "kernels", "");
  change_line(run, "start", 0, "device", "");
  change_line(run, "start", 1, "device", "another");
  EXPECT_THAT(call("diff base older").output,
              AllOf(ContainsRegex("kernels .* not compared\n"),
                    ContainsRegex("device +CPU +another +differ, first at step 5\n")));
}

TEST_F(DiffCommand, TellsOtherSegments) {
  EXPECT_THAT(call("diff base base").output, Not(HasSubstr("segments")));
  const std::string cut =
      "data.segments.by=consecutive loss.list_mle.clip_norm=.inf data.segments.nodes=";
  train("long", cut + "30");
  train("short", cut + "15");
  const std::string found = call("diff long short").output;
  EXPECT_THAT(found, AllOf(ContainsRegex("\nsegments +[0-9a-f]{16} +[0-9a-f]{16} +differ\n"),
                           HasSubstr("other segments of graphs")));
  EXPECT_THAT(call("diff long long").output,
              ContainsRegex("\nsegments +[0-9a-f]{16} +[0-9a-f]{16} +equal\n"));
}

TEST_F(DiffCommand, SaysWhyEvaluationsAreNotCompared) {
  train("rows", "train.evaluate_rows=3 train.last_evaluation=all");
  const std::string found = call("diff base rows").output;
  EXPECT_THAT(found, AllOf(ContainsRegex("evaluations .* not compared\n"),
                           ContainsRegex("step 3 +at most 4 rows +at most 3 rows +not compared: "
                                         "train.evaluate_rows differs\n"),
                           ContainsRegex("step 6 +at most 4 rows +all rows +not compared: "
                                         "train.last_evaluation differs\n")));
  // Best scores in checkpoints are those of the evaluations.
  EXPECT_THAT(found,
              AllOf(StartsWith("different: first at step 4 in members/best_score of member "),
                    HasSubstr("\n  evaluations took other rows: train.evaluate_rows, "
                              "train.last_evaluation\n")));
  EXPECT_THAT(call("diff base base").output, Not(HasSubstr("not compared: ")));
}

TEST_F(DiffCommand, SaysThatBothAreOneFolder) {
  EXPECT_THAT(output_of(call("diff base ./base")),
              HasSubstr("up to step 6 (one folder, given twice)\n"));
}

TEST_F(DiffCommand, NamesStepAndFieldOfAnotherOrder) {
  train("order", "seed.order=2");
  EXPECT_THAT(output_of(call("diff base order"), 1),
              AllOf(ContainsRegex("^different: first at step 1 in loss of member 0: [0-9.]+ "
                                  "and [0-9.]+\n  other settings: seed.order\n"),
                    ContainsRegex("\n  seed.order +1 +2\n"),
                    ContainsRegex("logged steps .* differ from step 1 on\n")));
}

TEST_F(DiffCommand, NamesAnotherLearningRateBeforeItChangesTheLoss) {
  train("rate", "optimizer.lr=0.5");
  EXPECT_THAT(call("diff base rate").output,
              StartsWith("different: first at step 1 in rate: 0.001 and 0.5\n  other settings: "
                         "optimizer.lr\n"));
}

TEST_F(DiffCommand, NamesTheFirstGraphInAnotherFold) {
  train("folds", "ensemble.fold_seed=5");
  EXPECT_THAT(output_of(call("diff base folds"), 1),
              AllOf(HasSubstr("\n  other folds\n"),
                    ContainsRegex("\n  [^ ]+ +fold [01] +fold [01] +first\n")));
}

TEST_F(DiffCommand, ComparesMembersByTheirNumbers) {
  train("second", "ensemble.members=1 ensemble.first_member=1");
  EXPECT_THAT(output_of(call("diff base second"), 1),
              StartsWith("different: other settings: ensemble.first_member, "
                         "ensemble.members; all numbers in both are equal\n"));
}

// Scores of other members together are other numbers, and no difference of a member.
TEST_F(DiffCommand, ComparesNoScoresOfOtherMembersTogether) {
  train("first", "ensemble.members=1");
  EXPECT_THAT(call("diff base first").output,
              StartsWith("different: other settings: ensemble.members; all numbers in "
                         "both are equal\n"));
}

TEST_F(DiffCommand, NamesTheParameterOfACheckpoint) {
  const fs::path path = checkpoint_path(copy("state") / "checkpoints", 4);
  const ParameterTable table = CheckpointFile(path).parameters();
  Checkpoint checkpoint = CheckpointFile(path).load(table);
  const ParameterEntry& entry = table.entries()[2];
  checkpoint.second_moment[table.length() + entry.offset] += 1;
  save_checkpoint(path, checkpoint, table);
  EXPECT_THAT(
      output_of(call("diff base state"), 1),
      AllOf(StartsWith("different: first at step 4 in optimizer/second of member 1, first in " +
                       entry.name + "\n  settings, data and folds that are known are equal"),
            ContainsRegex("parameters, step 2 .* equal\n")));
}

TEST_F(DiffCommand, NamesTheScoresOfSegments) {
  train("cut", "data.segments.by=consecutive data.segments.nodes=15 loss.list_mle.clip_norm=.inf");
  fs::copy(*folder_ / "cut", *folder_ / "other", fs::copy_options::recursive);
  EXPECT_EQ(call("diff cut other").exit_code, 0);
  const fs::path path = checkpoint_path(*folder_ / "other" / "checkpoints", 4);
  const ParameterTable table = CheckpointFile(path).parameters();
  Checkpoint checkpoint = CheckpointFile(path).load(table);
  ASSERT_FALSE(checkpoint.segment_scores.empty());
  checkpoint.segment_scores.back() += 1;
  save_checkpoint(path, checkpoint, table);
  EXPECT_THAT(call("diff cut other").output,
              StartsWith("different: first at step 4 in segment_scores of member 1\n"));
}

TEST_F(DiffCommand, NeedsNoCheckpoints) {
  fs::remove_all(copy("bare") / "checkpoints");
  EXPECT_THAT(output_of(call("diff bare base")),
              AllOf(StartsWith("equal: 6 logged steps, 2 evaluations, the parameters "),
                    ContainsRegex("data +unknown +[0-9a-f]+ +not compared\n"),
                    ContainsRegex("checkpoints +none +step 6 +not compared\n")));
}

TEST_F(DiffCommand, SaysWhichRunEndsEarlier) {
  const fs::path run = copy("shorter");
  cut_metrics(run, 5);
  fs::remove(checkpoint_path(run / "checkpoints", 6));
  EXPECT_THAT(output_of(call("diff base shorter"), 1),
              StartsWith("different: base ends at step 6, shorter at step 4; equal until then\n"));
}

TEST_F(DiffCommand, CallsNothingEqualThatItCannotRead) {
  overwrite(checkpoint_path(copy("broken") / "checkpoints", 4), "no checkpoint");
  EXPECT_THAT(output_of(call("diff base broken"), 3),
              HasSubstr("cannot say whether the runs are equal: broken/checkpoints/"));
  const fs::path lines = copy("lines") / "metrics.jsonl";
  overwrite(lines, read_text_file(lines) + "{\"kind\": 3}\n");
  EXPECT_THAT(call("diff lines base").output, HasSubstr("lines/metrics.jsonl: 1 line damaged"));
  // A difference is one all the same.
  write_file_atomically(*folder_ / "broken/config.yaml", "{");
  train("seed", "seed.init=2");
  EXPECT_THAT(output_of(call("diff broken seed"), 1),
              AllOf(StartsWith("different: first at step 1 in loss of member 0"),
                    HasSubstr("\ndamaged: broken/checkpoints/step-000000004.h5")));
}

TEST_F(DiffCommand, RefusesWhatIsNoRunAndWhatHasNothingInCommon) {
  EXPECT_EQ(call("diff base").exit_code, 2);
  EXPECT_EQ(call("diff base nowhere").exit_code, 2);
  EXPECT_EQ(call("diff base .").exit_code, 2);
  const fs::path run = copy("empty");
  for (const char* file : {"metrics.jsonl", "scores.json", "checkpoints"})
    fs::remove_all(run / file);
  fs::create_directory(run / "checkpoints");
  EXPECT_THAT(output_of(call("diff empty empty"), 3), HasSubstr("nothing to compare"));
}

}  // namespace
}  // namespace tpudist::test
