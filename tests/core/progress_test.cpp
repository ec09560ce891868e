#include "core/progress.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/pseudo_terminal.hpp"

namespace tpudist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
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
  now_ += 29s;
  bar.advance(100);
  EXPECT_EQ(written(), "");
  now_ += 1s;
  bar.advance(400, "resnet50");
  EXPECT_EQ(written(), "convert: 25%, 500 of 2,000 graphs, 16.7 graphs/s, 1:30 left, resnet50\n");
  now_ += 1s;
  bar.finish();
  EXPECT_EQ(written(), "convert: 500 graphs in 31 s, 16.1 graphs/s, resnet50\n");
  bar.finish();
  bar.advance(1);
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressBarTest, AnUnknownTotalShowsNoShare) {
  ProgressBar bar(options(false));
  bar.start("scan", 0, "files");
  now_ += 30s;
  bar.advance(5);
  EXPECT_EQ(written(), "scan: 0 files\nscan: 5 files, 6.0 s each\n");
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
      "\rtrain: [###########............] 50%, 50 of 100 steps, 50.0 steps/s, 1.0 s left\x1b[K");
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
  bar.line("a\x1b[2Jb\nsecond\tcolumn");
  EXPECT_THAT(written(), HasSubstr("a?[2Jb\nsecond\tcolumn\n"));
}

TEST_F(ProgressBarTest, BytesHaveTheirUnits) {
  ProgressBar bar(options(false));
  bar.start("convert", 4 << 20, "bytes");
  now_ += 30s;
  bar.advance(3 << 20, "alexnet");
  EXPECT_THAT(written(), HasSubstr("convert: 75%, 3.0 MiB of 4.0 MiB, 102.4 KiB/s, 10 s left, "
                                   "alexnet\n"));
  bar.finish();
  EXPECT_EQ(written(), "convert: 3.0 MiB in 30 s, 102.4 KiB/s, alexnet\n");
}

TEST_F(ProgressBarTest, MoreThanTheTotalIsFull) {
  ProgressBar bar(options(false));
  bar.start("train", 10, "steps");
  now_ += 40s;
  bar.advance(80);
  EXPECT_THAT(written(), HasSubstr("train: 100%, 80 of 10 steps, 2.0 steps/s\n"));
}

TEST_F(ProgressBarTest, AnUnfinishedBarLeavesItsLine) {
  {
    ProgressBar bar(options(true));
    bar.start("train", 10, "steps");
    written();
  }
  EXPECT_EQ(written(), "\n");
}

TEST_F(ProgressBarTest, AJobWithinAJobIsShownInItsPlace) {
  ProgressBar bar(options(false));
  bar.start("train", 10, "steps");
  bar.advance(4);
  bar.start("score", 100, "scores");
  EXPECT_EQ(written(), "train: 0%, 0 of 10 steps\n");
  now_ += 30s;
  bar.advance(30);
  EXPECT_EQ(written(), "train 40% > score: 30%, 30 of 100 scores, 1.0 scores/s, 1:10 left\n");
  bar.finish();
  EXPECT_EQ(written(), "");
  now_ += 30s;
  bar.advance(2, "loss 0.5");
  EXPECT_EQ(written(), "train: 60%, 6 of 10 steps, 10 s each, 40 s left, loss 0.5\n");
  bar.finish();
  EXPECT_EQ(written(), "train: 6 steps in 1:00, 10 s each, loss 0.5\n");
  bar.finish();
  EXPECT_EQ(written(), "");
}

// The last line of the screen of a terminal with a training on it.
std::string live_line(unsigned short columns, std::string_view note = "loss 3.1234") {
  test::PseudoTerminal terminal(columns);
  std::chrono::steady_clock::time_point now{1000s};
  ProgressBar::Options options;
  options.descriptor = terminal.descriptor();
  options.now = [&now] { return now; };
  ProgressBar bar(options);
  bar.start("train", 400'000, "steps");
  now += 4000s;
  bar.advance(48'000, note);
  EXPECT_EQ(terminal.lines().size(), 1u) << columns;  // nothing was wrapped
  return terminal.lines().back();
}

TEST(ProgressBarOnATerminal, DropsTheBarAndThenWordsButNotTheNumbers) {
  TPUDIST_NEEDS_TERMINAL();
  EXPECT_EQ(live_line(120),
            "train: [##......................] 12%, 48,000 of 400,000 steps, 12.0 steps/s, 8:08:53 "
            "left, loss 3.1234");
  EXPECT_EQ(live_line(80),
            "train: [#..............] 12%, 48,000/400,000, 12.0/s, 8:08:53 left, loss 3.1234");
  EXPECT_EQ(live_line(70), "train: 12%, 48,000/400,000, 12.0/s, 8:08:53 left, loss 3.1234");
  EXPECT_EQ(live_line(60), "train: 12%, 48,000/400,000, 12.0/s, 8:08:53 left");
  EXPECT_EQ(live_line(40), "12%, 48,000/400,000, 8:08:53 left");
  EXPECT_EQ(live_line(20), "12%, 8:08:53 left");
  EXPECT_EQ(live_line(10), "12%");
  EXPECT_EQ(live_line(3), "12");
}

TEST(ProgressBarOnATerminal, DropsANameBeforeTheBar) {
  TPUDIST_NEEDS_TERMINAL();
  EXPECT_EQ(live_line(80, "tf2_bert_pretrain_dynamic_sequence_length"),
            "train: [#............] 12%, 48,000 of 400,000 steps, 12.0 steps/s, 8:08:53 left");
}

TEST(ProgressBarOnATerminal, LinesStandAboveTheBar) {
  TPUDIST_NEEDS_TERMINAL();
  test::PseudoTerminal terminal(60);
  ProgressBar::Options options;
  options.descriptor = terminal.descriptor();
  {
    ProgressBar bar(options);
    bar.start("train", 4, "steps");
    bar.line("step 1");
    bar.start("score", 4, "scores");
    bar.line("12:00:00 warning a worry");
    bar.finish();
    bar.line("Kendall tau 0.5");
    EXPECT_THAT(terminal.lines(),
                ElementsAre("step 1", "12:00:00 warning a worry", "Kendall tau 0.5",
                            "train: [........................] 0%, 0 of 4 steps"));
    bar.finish();
  }
  EXPECT_THAT(terminal.lines(), ElementsAre("step 1", "12:00:00 warning a worry", "Kendall tau 0.5",
                                            StartsWith("train: 0 steps in"), ""));
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
