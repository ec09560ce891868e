#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file_system.hpp"
#include "dist/health/job_trace.hpp"
#include "tests/support/chrome_trace.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::IsSupersetOf;

// Trains alone with two threads, and writes what it traced.
TrainOutcome traced_run(const Experiment& experiment, const TempDir& folder) {
  const auto world = make_self_communicator();
  ThreadPool pool(2, use_one_thread_per_worker);
  NoProgress progress;
  JobTrace job(*world);
  JobContext context{*world, pool, NodeTopology{}, progress, nullptr, &job.trace()};
  const TrainOutcome outcome =
      train(experiment, folder / "traced", false, context, [] { return false; });
  job.write(*world, folder / "trace.json");
  return outcome;
}

using TracedRun = TrainTest;

TEST_F(TracedRun, ShowsEveryPartOfEveryStepAndChangesNoBit) {
  const Experiment experiment =
      tiny_experiment({"train.evaluate_every=3", "train.checkpoint_every=2"});
  const TrainOutcome traced = traced_run(experiment, folder);
  EXPECT_EQ(traced.parameter_hash, test::run(experiment, folder / "plain").parameter_hash);
  const ChromeTrace trace = read_chrome_trace(read_text_file(folder / "trace.json"));
  EXPECT_THAT(trace.names(0),
              IsSupersetOf({"step", "wait for data", "agree on step", "compute", "forward", "loss",
                            "backward", "add gradients", "reduction", "optimizer", "report",
                            "checkpoint", "evaluation", "score", "prepare step", "data", "plan"}));
  std::set<std::int64_t> steps;
  for (const auto& [track, spans] : trace.spans) {
    for (const ChromeTrace::Span& span : spans) {
      if (span.name != "forward") continue;
      steps.insert(span.args.at("step").get<std::int64_t>());
      EXPECT_FALSE(span.args.at("graph").get<std::string>().empty());
      EXPECT_GE(span.args.at("unit").get<int>(), 0);
    }
  }
  EXPECT_EQ(steps.size(), static_cast<std::size_t>(traced.steps));
  EXPECT_EQ(*steps.begin(), 1);
}

TEST_F(TracedRun, ShowsTheChunksOfALargeSlate) {
  traced_run(tiny_experiment({"batch.config_chunk=3"}), folder);
  const ChromeTrace trace = read_chrome_trace(read_text_file(folder / "trace.json"));
  EXPECT_THAT(trace.names(0), IsSupersetOf({"scores of chunk", "forward", "backward"}));
}

}  // namespace
}  // namespace tpudist::test
