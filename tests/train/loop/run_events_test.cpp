#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_system.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "models/kernels/cpu_process.hpp"
#include "results/records/learning_curves.hpp"
#include "results/records/predictions_file.hpp"
#include "results/records/run_folder.hpp"
#include "results/records/tensorboard_file.hpp"
#include "results/scores/member_scores.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The events of a run, without wall time, are those that the lines of metrics.jsonl make.
void expect_events_of_metrics(const RunFolder& folder) {
  const std::string bytes = read_text_file(folder.events());
  const auto records = whole_records(bytes);
  std::istringstream lines(read_text_file(folder.metrics()));
  std::size_t at = 1;  // after the version
  for (std::string line; std::getline(lines, line); ++at) {
    ASSERT_LT(at, records.size());
    const auto metrics = nlohmann::json::parse(line);
    const auto step = metrics.at("step").get<std::int64_t>();
    EXPECT_EQ(records[at].step, step);
    const std::string expected = event_record(0, metrics);
    constexpr std::size_t kWallTime = 1 + 8;  // key and double in front of the event
    EXPECT_EQ(records[at].event.substr(kWallTime),
              whole_records(expected).front().event.substr(kWallTime));
  }
  EXPECT_EQ(at, records.size());
}

Experiment logged_experiment() {
  return tiny_experiment({"train.log_every=1", "train.evaluate_every=3", "train.evaluate_rows=4",
                          "train.checkpoint_every=2", "train.last_evaluation=sampled"});
}

using RunEvents = TrainTest;

TEST_F(RunEvents, AreThoseOfTheMetrics) {
  run(logged_experiment(), folder / "run");
  expect_events_of_metrics(RunFolder(folder / "run"));
}

TEST_F(RunEvents, GoOnWithoutDuplicatesWhereARunIsResumed) {
  const RunFolder files(folder / "run");
  run(logged_experiment(), files.path(), 1, false, stop_after(3));
  // As if it had been killed after a later line, which the checkpoint does not know.
  files.append_metrics({{"kind", "step"}, {"step", 5}, {"loss", {1.0}}});
  std::filesystem::resize_file(files.events(), std::filesystem::file_size(files.events()) - 5);
  test::resume(logged_experiment(), files.path());
  expect_events_of_metrics(files);
}

TEST(RunStart, IsToldWithCommandMachineAndSettingsEachTime) {
  const TempDir folder;
  const RunFolder files(folder / "run");
  run(logged_experiment(), files.path(), 1, false, stop_after(3));
  test::resume(logged_experiment(), files.path());
  const std::vector<RunStart> starts = read_learning_curves(files.metrics()).starts;
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].step, 0);
  EXPECT_EQ(starts[1].step, 3);
  EXPECT_THAT(starts[0].command, ::testing::HasSubstr("run_events_test"));
  EXPECT_EQ(starts[0].ranks, 1);
  const std::string text = read_text_file(files.metrics());
  const auto settings = nlohmann::json::parse(text.substr(0, text.find('\n'))).at("settings");
  EXPECT_TRUE(settings.contains("optimizer.lr"));
  EXPECT_EQ(settings.at("train.evaluate_rows"), "4");
  EXPECT_EQ(settings.at("train.last_evaluation"), "sampled");
  EXPECT_FALSE(settings.contains("data.shards"));  // decides no numbers
  EXPECT_FALSE(starts[0].libtorch.empty());
  EXPECT_EQ(starts[0].kernels, cpu_kernels(Precision::fp32));
  EXPECT_EQ(starts[0].device, "CPU");
}

// What is logged while a run is resumed for no step.
std::string log_of_resuming(const RunFolder& files) {
  std::ostringstream log;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log);
  spdlog::default_logger()->sinks().push_back(sink);
  run(logged_experiment(), files.path(), 1, true, [] { return true; });
  spdlog::default_logger()->sinks().pop_back();
  return log.str();
}

TEST(RunStart, WarnsOfAnotherProgramThanThatOfTheStepsBefore) {
  const TempDir folder;
  const RunFolder files(folder / "run");
  run(logged_experiment(), files.path(), 1, false, stop_after(3));
  EXPECT_THAT(log_of_resuming(files), Not(HasSubstr("may differ")));

  std::string text = read_text_file(files.metrics());
  auto start = nlohmann::json::parse(text.substr(0, text.find('\n')));
  const std::string rest = text.substr(text.find('\n'));
  const std::string libtorch = start.at("libtorch");
  start["libtorch"] = "1.0", start["ranks"] = 7, start["processor"] = "of an equal kind";
  write_file_atomically(files.metrics(), start.dump() + rest);
  // Also the second time: the first took no step.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        log_of_resuming(files),
        AllOf(HasSubstr(
                  "resumed by another program or on another kind of processor: LibTorch: 1.0 -> " +
                  libtorch + "; from here on the bits may differ"),
              HasSubstr("`tpudist diff` shows where")));
  }
}

// Parameters and data are known without predictions, by the same hashes.
TEST(Scores, KeepTheHashesThatPredictionsHave) {
  const TempDir folder;
  run(tiny_experiment({"predictions.rows=all"}), folder / "run");
  const RunFolder files(folder / "run");
  const MemberScores of_file = read_member_scores(PredictionsFile(files.predictions()));
  const MemberScores of_json =
      read_member_scores_json(files.scores(), of_file.collection, /*first_member=*/0);
  EXPECT_NE(of_json.parameter_hash, 0u);
  EXPECT_EQ(of_json.parameter_hash, of_file.parameter_hash);
  ASSERT_FALSE(of_json.graphs.empty());
  for (const GraphResult& graph : of_json.graphs) {
    const auto same = std::ranges::find_if(of_file.graphs, [&](const GraphResult& other) {
      return other.name == graph.name && other.split == graph.split;
    });
    ASSERT_NE(same, of_file.graphs.end());
    EXPECT_NE(graph.data_hash, 0u);
    EXPECT_EQ(graph.data_hash, same->data_hash) << graph.name;
  }
}

}  // namespace
}  // namespace tpudist::test
