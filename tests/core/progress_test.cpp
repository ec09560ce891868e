#include "core/progress.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include <string>
#include <thread>
#include <vector>

namespace tpudist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A bar that writes into a pipe, at a time that the test sets.
class ProgressBarTest : public ::testing::Test {
 protected:
  ProgressBarTest() {
    EXPECT_EQ(pipe(pipe_), 0);
    EXPECT_EQ(fcntl(pipe_[0], F_SETFL, O_NONBLOCK), 0);
  }
  ~ProgressBarTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  ProgressBar::Options options(bool terminal) {
    ProgressBar::Options options;
    options.descriptor = pipe_[1];
    options.terminal = terminal;
    options.now = [this] { return now_; };
    return options;
  }

  // What was written since the last call.
  std::string written() {
    std::string text(65536, '\0');
    const ssize_t count = read(pipe_[0], text.data(), text.size());
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }

  int pipe_[2];
  std::chrono::steady_clock::time_point now_{1000s};
};

TEST_F(ProgressBarTest, PlainLinesComeNowAndThen) {
  ProgressBar bar(options(false));
  bar.start("convert", 2000, "graphs");
  EXPECT_EQ(written(), "convert: 0%, 0 of 2,000 graphs\n");
  now_ += 5s;
  bar.advance(100);
  EXPECT_EQ(written(), "");
  now_ += 5s;
  bar.advance(400, "resnet50");
  EXPECT_EQ(written(), "convert: 25%, 500 of 2,000 graphs, 50.0 graphs/s, 30 s left, resnet50\n");
  now_ += 1s;
  bar.finish();
  EXPECT_EQ(written(), "convert: 500 graphs in 11 s, 45.5 graphs/s, resnet50\n");
  bar.finish();
  bar.advance(1);
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressBarTest, AnUnknownTotalShowsNoShare) {
  ProgressBar bar(options(false));
  bar.start("scan", 0, "files");
  now_ += 10s;
  bar.advance(5);
  EXPECT_EQ(written(), "scan: 0 files\nscan: 5 files, 2.0 s each\n");
}

TEST_F(ProgressBarTest, ATerminalOverwritesOneLine) {
  ProgressBar bar(options(true));
  bar.start("train", 100, "steps");
  EXPECT_EQ(written(), "\rtrain: [........................] 0%, 0 of 100 steps\x1b[K");
  now_ += 50ms;
  bar.advance(1);
  EXPECT_EQ(written(), "");
  now_ += 950ms;
  bar.advance(49);
  EXPECT_EQ(
      written(),
      "\rtrain: [############............] 50%, 50 of 100 steps, 50.0 steps/s, 1.0 s lef\x1b[K");
  bar.finish();
  EXPECT_EQ(written(), "\r\x1b[Ktrain: 50 steps in 1.0 s, 50.0 steps/s\n");
}

TEST_F(ProgressBarTest, ALineGoesAboveTheBar) {
  ProgressBar bar(options(true));
  bar.line("before");
  EXPECT_EQ(written(), "before\n");
  bar.start("train", 10, "steps");
  written();
  bar.line("step 3");
  EXPECT_THAT(written(), StartsWith("\r\x1b[Kstep 3\n\rtrain: ["));
}

TEST_F(ProgressBarTest, ALineIsPlainElsewhere) {
  ProgressBar bar(options(false));
  bar.start("train", 10, "steps");
  written();
  bar.line("step 3");
  EXPECT_EQ(written(), "step 3\n");
}

TEST_F(ProgressBarTest, NamesCannotMoveTheCursor) {
  ProgressBar bar(options(true));
  bar.start("", 0, "steps");
  written();
  now_ += 1s;
  bar.advance(1, "a\n\x1b[2Jb");
  EXPECT_THAT(written(), HasSubstr("a??[2Jb"));
}

TEST_F(ProgressBarTest, LongNotesAreCutAtCharacters) {
  ProgressBar bar(options(true));
  bar.start("", 0, "x");
  written();
  now_ += 1s;
  std::string note;
  for (int i = 0; i < 100; ++i) note += "\u00e9";
  bar.advance(1, note);
  const std::string text = written();
  const std::string line = text.substr(1, text.size() - 4);
  EXPECT_EQ(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }), 79);
  EXPECT_THAT(line, ::testing::EndsWith("\u00e9"));
}

TEST_F(ProgressBarTest, MoreThanTheTotalIsFull) {
  ProgressBar bar(options(false));
  bar.start("train", 10, "steps");
  now_ += 20s;
  bar.advance(20);
  EXPECT_THAT(written(), HasSubstr("train: 100%, 20 of 10 steps, 1.0 steps/s\n"));
}

TEST_F(ProgressBarTest, AnUnfinishedBarLeavesItsLine) {
  {
    ProgressBar bar(options(true));
    bar.start("train", 10, "steps");
    written();
  }
  EXPECT_EQ(written(), "\n");
}

TEST_F(ProgressBarTest, ANewJobEndsTheLast) {
  ProgressBar bar(options(false));
  bar.start("one", 1, "steps");
  bar.advance(1);
  bar.start("two", 1, "steps");
  EXPECT_EQ(written(), "one: 0%, 0 of 1 steps\none: 1 steps in 0 ms\ntwo: 0%, 0 of 1 steps\n");
}

TEST_F(ProgressBarTest, IsThreadSafe) {
  ProgressBar::Options unlimited = options(false);
  unlimited.now = nullptr;
  ProgressBar bar(unlimited);
  bar.start("train", 4000, "steps");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) bar.advance(1);
      bar.line("done");
    });
  }
  for (std::thread& thread : threads) thread.join();
  bar.finish();
  EXPECT_THAT(written(), HasSubstr("4,000 steps in"));
}

TEST_F(ProgressBarTest, AClosedDescriptorIsIgnored) {
  ProgressBar::Options closed = options(false);
  closed.descriptor = -1;
  ProgressBar bar(closed);
  bar.start("train", 10, "steps");
  bar.finish();
}

TEST_F(ProgressBarTest, APipeIsNoTerminal) {
  ProgressBar::Options asked = options(false);
  asked.terminal = -1;
  ProgressBar bar(asked);
  bar.start("train", 10, "steps");
  EXPECT_THAT(written(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace tpudist
