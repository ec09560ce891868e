#include "dist/health/job_trace.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "tests/support/chrome_trace.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

// The folder of rank 0, which is on the same machine.
std::filesystem::path shared(Communicator& world, const TempDir& own) {
  return all_gather_text(world, (own / "").string()).front();
}

TEST(JobTrace, IsOneFileWithAProcessForEachRankAndATrackForEachThread) {
  const MpiSession session(nullptr, nullptr);
  const auto world = session.world();
  const TempDir own;
  const auto file = shared(*world, own) / "trace.json";
  JobTrace job(*world);
  {
    const TraceSpan step(&job.trace(), "step", 1);
    const TraceSpan forward(&job.trace(), "forward", 1, world->rank(),
                            job.trace().keep("a \"graph\"\n\xff"));
  }
  std::thread([&] {
    job.trace().name_thread("data");
    const TraceSpan span(&job.trace(), "plan", 2);
  }).join();
  job.write(*world, file);
  const ChromeTrace trace = read_chrome_trace(read_text_file(file));
  EXPECT_EQ(trace.processes.size(), static_cast<std::size_t>(world->size()));
  for (int rank = 0; rank < world->size(); ++rank) {
    EXPECT_TRUE(trace.processes.at(rank).starts_with("rank " + std::to_string(rank) + " on "));
    EXPECT_EQ(trace.threads.at({rank, 0}), "main");
    EXPECT_EQ(trace.threads.at({rank, 1}), "data");
    const auto& main = trace.spans.at({rank, 0});
    ASSERT_EQ(main.size(), 2u);
    EXPECT_EQ(main[0].name, "step");
    EXPECT_EQ(main[1].args.at("unit"), rank);
    EXPECT_TRUE(main[1].args.at("graph").get<std::string>().starts_with("a \"graph\"\n"));
    EXPECT_EQ(trace.spans.at({rank, 1}).at(0).args.at("step"), 2);
  }
  world->barrier();
}

// On all ranks, spans after a barrier begin after all spans before it.
TEST(JobTrace, PutsTheRanksOnOneClock) {
  const MpiSession session(nullptr, nullptr);
  const auto world = session.world();
  const TempDir own;
  const auto file = shared(*world, own) / "trace.json";
  JobTrace job(*world);
  { const TraceSpan span(&job.trace(), "before"); }
  world->barrier();
  { const TraceSpan span(&job.trace(), "behind"); }
  job.write(*world, file);
  const ChromeTrace trace = read_chrome_trace(read_text_file(file));
  for (int a = 0; a < world->size(); ++a) {
    for (int b = 0; b < world->size(); ++b)
      EXPECT_LE(trace.spans.at({a, 0})[0].end, trace.spans.at({b, 0})[1].begin);
  }
  world->barrier();
}

TEST(JobTrace, SaysWhatItDropped) {
  const MpiSession session(nullptr, nullptr);
  const auto world = session.world();
  const TempDir own;
  const auto file = shared(*world, own) / "trace.json";
  JobTrace job(*world, 2);
  for (int i = 0; i < 5; ++i) {
    const TraceSpan span(&job.trace(), "step", i);
  }
  job.write(*world, file);
  const ChromeTrace trace = read_chrome_trace(read_text_file(file));
  EXPECT_EQ(trace.threads.at({0, 0}), "main (3 older spans dropped)");
  EXPECT_EQ(trace.spans.at({0, 0}).at(0).args.at("step"), 3);
  world->barrier();
}

TEST(JobTrace, LeavesTheOldFileWhereItCannotWrite) {
  const MpiSession session(nullptr, nullptr);
  const auto world = session.world();
  const TempDir own;
  JobTrace job(*world);
  { const TraceSpan span(&job.trace(), "step"); }
  EXPECT_THROW(job.write(*world, shared(*world, own) / "nowhere" / "trace.json"), Error);
  world->barrier();
}

TEST(TraceEvents, AreInMicrosecondsOfTheClockOfRankZero) {
  const std::vector<TraceTrack> tracks{
      {"main", 0, {{"step", nullptr, 7, -1, 5'001'234, 5'002'239}}}};
  const std::string text =
      trace_events(tracks, 1, "node", 1'000'000, {.offset = 4'000'000, .error = 8});
  EXPECT_NE(text.find(R"("ts":1.234,"dur":1.005,"args":{"step":7})"), std::string::npos) << text;
  EXPECT_NE(text.find("clock within 0.008 us"), std::string::npos);
}

}  // namespace
}  // namespace tpudist::test
