#include "core/trace.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace tpudist {
namespace {

TEST(Trace, KeepsSpansOfEachThreadByBeginOuterFirst) {
  Trace trace;
  trace.name_thread("main");
  {
    const TraceSpan outer(&trace, "outer", 3);
    const TraceSpan inner(&trace, "inner", 3, 1, trace.keep("graph"));
  }
  std::thread([&] { const TraceSpan span(&trace, "beside"); }).join();
  const std::vector<TraceTrack> tracks = trace.tracks();
  ASSERT_EQ(tracks.size(), 2u);
  EXPECT_EQ(tracks[0].thread, "main");
  EXPECT_EQ(tracks[1].thread, "worker 1");
  ASSERT_EQ(tracks[0].spans.size(), 2u);
  const TracedSpan &outer = tracks[0].spans[0], &inner = tracks[0].spans[1];
  EXPECT_STREQ(outer.name, "outer");
  EXPECT_STREQ(inner.name, "inner");
  EXPECT_STREQ(inner.detail, "graph");
  EXPECT_EQ(inner.step, 3);
  EXPECT_EQ(inner.unit, 1);
  EXPECT_LE(outer.begin, inner.begin);
  EXPECT_LE(inner.begin, inner.end);
  EXPECT_LE(inner.end, outer.end);
  ASSERT_EQ(tracks[1].spans.size(), 1u);
  EXPECT_STREQ(tracks[1].spans[0].name, "beside");
}

TEST(Trace, ReplacesTheOldestAndCountsThem) {
  Trace trace(3);
  for (int i = 0; i < 5; ++i) trace.add({"span", nullptr, i, -1, 10 * i, 10 * i + 5});
  const TraceTrack track = trace.tracks().at(0);
  EXPECT_EQ(track.dropped, 2);
  ASSERT_EQ(track.spans.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(track.spans[i].step, i + 2);
}

TEST(Trace, IsNotConfusedWithOneThatWasThereBefore) {
  for (int round = 0; round < 3; ++round) {
    Trace trace;
    EXPECT_TRUE(trace.tracks().empty());
    trace.add({"span", nullptr, round, -1, 0, 1});
    EXPECT_EQ(trace.tracks().at(0).spans.size(), 1u);
  }
}

TEST(Trace, KeepsEqualTextsOnce) {
  Trace trace;
  const std::string text = "a name that is longer than a short string's own memory";
  const char* kept = trace.keep(text);
  for (int i = 0; i < 100; ++i) trace.keep("text " + std::to_string(i));
  EXPECT_EQ(trace.keep(text), kept);
  EXPECT_EQ(kept, text);
}

TEST(TraceSpan, EndsOnce) {
  Trace trace;
  {
    TraceSpan span(&trace, "span");
    span.end();
  }
  EXPECT_EQ(trace.tracks().at(0).spans.size(), 1u);
}

TEST(TraceSpan, KeepsNothingWithoutATrace) {
  TraceSpan span(nullptr, "span");
  EXPECT_NO_THROW(span.end());
}

}  // namespace
}  // namespace tpudist
