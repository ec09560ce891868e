#include "results/scores/same_training.hpp"

#include <gmock/gmock.h>

#include "results/scores/result_set.hpp"
#include "tests/results/scores/run_case.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

using test::PredictionsCase;
using test::TempDir;
using test::write_run;
using test::write_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kScoresFile =
    R"({"split": "valid", "most_rows": 0, "held_out_only": false, PARAMETERS
    "ensemble": {"graphs": [{"name": "resnet50", "configs": 8, "kendall_tau": 0.75}]},
    "members": [{"number": 0, "used": true,
                 "graphs": [{"name": "resnet50", "configs": 8, "kendall_tau": 0.5}]}]})";

// A run without predictions, with a loss and, where it is given, the hash of its parameters.
fs::path write_scored(const fs::path& folder, double loss, const std::string& parameters = "",
                      const std::string& lr = "0.001", int steps = 100) {
  write_text(folder / "config.yaml", test::config_text(1, 0, 1) + "optimizer:\n  lr: " + lr + "\n");
  std::string lines;
  for (int step = 50; step <= steps; step += 50) {
    lines +=
        R"({"kind":"step","step":)" + std::to_string(step) + R"(,"loss":[)" + std::to_string(loss) +
        R"(],"norm":[1.0],"rate":0.01,"step_seconds":0.5,"wait_seconds":0,"train_seconds":1})" +
        "\n";
  }
  write_text(folder / "metrics.jsonl", lines);
  std::string scores = kScoresFile;
  const std::string hash = parameters.empty() ? "" : R"("parameters": ")" + parameters + "\",";
  scores.replace(scores.find("PARAMETERS"), 10, hash);
  write_text(folder / "scores.json", scores);
  return folder;
}

std::vector<SameTraining> pairs_of(const std::vector<fs::path>& folders) {
  std::vector<RunRecord> runs;
  for (const fs::path& folder : folders) runs.push_back(read_run_folder(folder));
  return same_trainings(runs);
}

class SameTrainings : public ::testing::Test {
 protected:
  const TempDir folder_;
};

TEST_F(SameTrainings, AreAFolderALinkToItAndACopy) {
  const fs::path run = write_run(folder_ / "run", PredictionsCase());
  fs::create_directory_symlink(run, folder_ / "link");
  fs::copy(run, folder_ / "copy", fs::copy_options::recursive);
  const auto pairs = pairs_of({run, run, folder_ / "link", folder_ / "copy"});
  ASSERT_EQ(pairs.size(), 3u);
  for (const SameTraining& pair : pairs) EXPECT_EQ(pair.first, 0u);
  EXPECT_EQ(pairs[0].why, "the same folder");
  EXPECT_EQ(pairs[1].why, "the same folder");
  EXPECT_EQ(pairs[2].why, "equal parameters");
  EXPECT_EQ(pairs[2].second, 3u);
}

TEST_F(SameTrainings, AreToldWithoutPredictions) {
  const fs::path a = write_scored(folder_ / "a", 0.5, "00000000000000aa"),
                 b = write_scored(folder_ / "b", 0.6, "00000000000000aa"),
                 c = write_scored(folder_ / "c", 0.5, "00000000000000bb"),
                 d = write_scored(folder_ / "d", 0.5), e = write_scored(folder_ / "e", 0.6);
  EXPECT_EQ(pairs_of({a, b}).at(0).why, "equal parameters");
  EXPECT_THAT(pairs_of({a, c}), IsEmpty());  // imported weights, say
  EXPECT_EQ(pairs_of({a, d}).at(0).why, "equal losses at 2 logged steps");
  EXPECT_THAT(pairs_of({a, e}), IsEmpty());
}

TEST_F(SameTrainings, ALongerTrainingOfOtherSettingsIsAnotherOne) {
  const fs::path a = write_scored(folder_ / "a", 0.5),
                 b = write_scored(folder_ / "b", 0.5, "", "0.001", 150),
                 c = write_scored(folder_ / "c", 0.5, "", "0.002", 150);
  EXPECT_EQ(pairs_of({a, b}).size(), 1u);  // a copy of when it still trained
  EXPECT_THAT(pairs_of({a, c}), IsEmpty());
}

TEST(DifferentSettings, LeaveSeedsAndMembersOut) {
  const TempDir folder;
  const RunRecord a = read_run_folder(write_scored(folder / "a", 0.5)),
                  b = read_run_folder(write_scored(folder / "b", 0.5, "", "2e-3"));
  EXPECT_THAT(different_settings(a, b), ElementsAre(HasSubstr("optimizer.lr: 0.001 -> 2e-3")));
  write_text(folder / "c" / "config.yaml", test::config_text(7, 2, 5) + "optimizer:\n  lr: 1e-3\n");
  EXPECT_THAT(different_settings(a, read_run_folder(folder / "c")), IsEmpty());
}

}  // namespace
}  // namespace tpudist
