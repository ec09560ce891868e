// An ensemble that is trained in several runs, each of some of its members: every member has the
// bits that it has where all are trained together.

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "core/file_system.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/run_folder.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/collection_scores.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

// Four members, each with a fold, a start and, as `order` says, rows of its own.
Experiment slice(int first, int members, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides{"ensemble.folds=4",
                                     "ensemble.vary=[init, fold]",
                                     "batch.slates=2",
                                     "train.steps=8",
                                     "ensemble.first_member=" + std::to_string(first),
                                     "ensemble.members=" + std::to_string(members)};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return tiny_experiment(overrides);
}

// The parameters of one member of a run.
std::vector<float> parameters(const TrainedRun& run, int member) {
  const std::size_t length = run.flat.size() / run.use.size();
  const auto own = std::span(run.flat).subspan(static_cast<std::size_t>(member) * length, length);
  return {own.begin(), own.end()};
}

class EnsembleSlices : public ::testing::TestWithParam<const char*> {};

TEST_P(EnsembleSlices, HaveTheBitsOfTheWholeEnsemble) {
  const TempDir folder;
  const std::vector<std::string> order{GetParam()};
  run(slice(0, 4, order), folder / "all");
  const TrainedRun all = open_run(folder / "all");
  for (int m = 1; m < 4; ++m) EXPECT_NE(parameters(all, m), parameters(all, 0)) << m;
  for (const int members : {2, 1}) {
    for (int first = 0; first < 4; first += members) {
      const fs::path path = folder / std::to_string(members * 10 + first);
      run(slice(first, members, order), path, /*threads=*/2);
      const TrainedRun part = open_run(path);
      for (int m = 0; m < members; ++m) {
        EXPECT_EQ(parameters(part, m), parameters(all, first + m))
            << "member " << first + m << " of a run of " << members;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, EnsembleSlices,
                         ::testing::Values("batch.order=shared", "batch.order=per_member",
                                           "batch.unit=graph"),
                         [](const auto& order) {
                           std::string name = order.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '.' || c == '='; }, '_');
                           return name;
                         });

// The lines of one kind in metrics.jsonl.
std::vector<nlohmann::json> logged(const fs::path& folder, const std::string& kind) {
  std::ifstream file(RunFolder(folder).metrics());
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(file, line);) {
    records.push_back(nlohmann::json::parse(line));
    if (records.back()["kind"] != kind) records.pop_back();
  }
  return records;
}

using EnsembleSlice = TrainTest;

// With one slate a batch, whole batches are of graphs that the only member holds out.
TEST_F(EnsembleSlice, TakesNoStepOnABatchThatItsOnlyMemberHoldsOut) {
  const Experiment experiment =
      slice(2, 1, {"batch.slates=1", "train.log_every=1", "ensemble.folds=2", "train.steps=16"});
  run(experiment, folder / "run");
  const Checkpoint saved = test::checkpoint_at(folder / "run", experiment, 16);
  ASSERT_THAT(saved.optimizer_steps,
              ElementsAre(::testing::AllOf(::testing::Gt(0), ::testing::Lt(16))));
  int without = 0;
  for (const nlohmann::json& line : logged(folder / "run", "step")) {
    without += line["loss"][0].is_null();
    EXPECT_EQ(line["loss"][0].is_null(), line["norm"][0].is_null());
  }
  EXPECT_EQ(without, 16 - saved.optimizer_steps[0]);
}

TEST_F(EnsembleSlice, NamesMembersByTheirNumbers) {
  const TrainOutcome outcome = run(slice(2, 2), folder / "run");
  ASSERT_TRUE(outcome.evaluation.has_value());
  EXPECT_THAT(evaluation_table(*outcome.evaluation), HasSubstr("\n  member 2  "));
  EXPECT_THAT(evaluation_table(*outcome.evaluation), HasSubstr("\n  member 3  "));
  EXPECT_THAT(evaluation_table(*outcome.evaluation), Not(HasSubstr("member 0")));
  const auto scores = nlohmann::json::parse(read_text_file(RunFolder(folder / "run").scores()));
  EXPECT_EQ(scores["members"][0]["number"], 2);
  EXPECT_EQ(scores["members"][1]["number"], 3);
}

TEST_F(EnsembleSlice, NamesAMemberThatFailsByItsNumber) {
  const Experiment experiment = slice(2, 2, {"train.checkpoint_every=4"});
  run(experiment, folder / "run");
  fs::remove(checkpoint_path(folder / "run/checkpoints", 8));
  test::spoil_member(checkpoint_path(folder / "run/checkpoints", 4), experiment, 1);
  EXPECT_THAT(test::resume(experiment, folder / "run").failed, ElementsAre(3));
}

std::vector<CollectionResult> score(const std::vector<TrainedRun>& runs) {
  OneRank alone(2);
  return score_runs(runs, {.split = "valid", .means = true}, alone.context);
}

// In whatever order the runs are given, to the bit.
TEST_F(EnsembleSlice, ScoresWithTheOthersAsTheWholeEnsemble) {
  run(slice(0, 3), folder / "all");
  run(slice(0, 2), folder / "first");
  run(slice(2, 1), folder / "second");
  const TrainedRun first = open_run(folder / "first"), second = open_run(folder / "second");
  const CollectionResult whole = score({open_run(folder / "all")}).front();
  for (const std::vector<TrainedRun>& runs : {std::vector{first, second}, {second, first}}) {
    const CollectionResult cut = score(runs).front();
    EXPECT_EQ(cut.mean, whole.mean);
    const std::string table = evaluation_table(*cut.evaluation);
    EXPECT_THAT(table, HasSubstr((folder / "second").string() + " member 2  "));
    EXPECT_EQ(evaluation_json(*cut.evaluation)["members"][2]["run"], (folder / "second").string());
    EXPECT_EQ(cut.evaluation->member_means(), whole.evaluation->member_means());
  }
}

}  // namespace
}  // namespace tpudist::test
