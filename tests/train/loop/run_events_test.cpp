#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_system.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/events/event_file.hpp"
#include "train/state/run_folder.hpp"

namespace tpudist {
namespace {

using testing::run;
using testing::TempDir;
using testing::tiny_experiment;

// The events of a run, without wall time, are those that the lines of metrics.jsonl make.
void expect_events_of_metrics(const RunFolder& folder) {
  const std::string bytes = read_text_file(folder.events());
  const auto records = whole_records(bytes);
  std::istringstream lines(read_text_file(folder.metrics()));
  std::size_t at = 1;  // behind the version
  for (std::string line; std::getline(lines, line); ++at) {
    ASSERT_LT(at, records.size());
    const auto metrics = nlohmann::json::parse(line);
    const auto step = metrics.at("step").get<std::int64_t>();
    EXPECT_EQ(records[at].step, step);
    const std::string expected = scalar_record(0, step, scalars_of(metrics));
    constexpr std::size_t kWallTime = 1 + 8;  // key and double in front of the event
    EXPECT_EQ(records[at].event.substr(kWallTime),
              whole_records(expected).front().event.substr(kWallTime));
  }
  EXPECT_EQ(at, records.size());
}

Experiment experiment() {
  return tiny_experiment({"train.log_every=1", "train.evaluate_every=3", "train.evaluate_rows=4",
                          "train.checkpoint_every=2", "train.last_evaluation=sampled"});
}

TEST(RunEvents, AreThoseOfTheMetrics) {
  const TempDir folder;
  run(experiment(), folder / "run");
  expect_events_of_metrics(RunFolder(folder / "run"));
}

TEST(RunEvents, GoOnWithoutDuplicatesWhereARunIsResumed) {
  const TempDir folder;
  const RunFolder files(folder / "run");
  int steps = 0;
  run(experiment(), files.path(), 1, false, [&] { return ++steps > 3; });
  // As if it had been killed behind a later line, which the checkpoint does not know.
  files.append_metrics({{"kind", "step"}, {"step", 5}, {"loss", {1.0}}});
  std::filesystem::resize_file(files.events(), std::filesystem::file_size(files.events()) - 5);
  testing::resume(experiment(), files.path());
  expect_events_of_metrics(files);
}

}  // namespace
}  // namespace tpudist
