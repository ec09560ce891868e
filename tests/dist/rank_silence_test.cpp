#include "dist/health/rank_silence.hpp"

#include <gmock/gmock.h>

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A rank that has finished so much, and waits in a collective where `waiting`.
RankStatus status(int rank, std::uint64_t beat, std::uint64_t finished, std::int64_t collective,
                  bool waiting) {
  RankStatus p;
  p.rank = rank;
  p.host = "here";
  p.process = 100 + rank;
  p.space = "processes of here";
  p.phase = "training";
  p.step = 7;
  p.collective = collective;
  p.call = "all_gather";
  p.bytes = 2048;
  p.waiting = waiting;
  p.finished = finished;
  p.beat = beat;
  return p;
}

using Statuses = std::vector<std::optional<RankStatus>>;

TEST(RankStatus, ComesBackFromText) {
  RankStatus before = status(3, 12, 99, 5, true);
  before.host = "a host";
  before.phase = "choice of a run";
  before.silent = 1.5;
  before.failed = true;
  const auto after = parse_status(to_text(before) + "\n\n\n");
  ASSERT_TRUE(after);
  EXPECT_EQ(to_text(*after), to_text(before));
}

TEST(RankStatus, IsRefusedWhenHalfOfItIsOfAnotherTime) {
  const std::string old = to_text(status(0, 1, 1, 1, false)),
                    now = to_text(status(0, 2, 2, 1, true));
  ASSERT_EQ(old.size(), now.size());
  EXPECT_FALSE(parse_status(now.substr(0, 40) + old.substr(40)));
  EXPECT_FALSE(parse_status(now.substr(0, 40)));
  EXPECT_FALSE(parse_status(""));
  EXPECT_FALSE(parse_status("beat x\nend x\n"));
}

TEST(SilenceMeter, CountsOwnSilenceWhereNothingIsKnownOfOthers) {
  SilenceMeter meter(2, 0, 5);
  meter.pass(10, status(0, 1, 4, 1, false));
  EXPECT_EQ(meter.silence(), 0);
  meter.pass(10, status(0, 2, 4, 1, true));
  meter.pass(10, status(0, 3, 4, 1, true));
  EXPECT_EQ(meter.silence(), 20);
  meter.pass(10, status(0, 4, 5, 1, true));  // a unit was finished
  EXPECT_EQ(meter.silence(), 0);
}

TEST(SilenceMeter, IsNotSilentWhileAnyRankGetsOn) {
  SilenceMeter meter(2, 0, 5);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    RankStatus other = status(1, i, i, 3, false);  // beats, and finishes something each time
    meter.pass(1, status(0, i, 4, 4, true), Statuses{{}, other});
  }
  EXPECT_EQ(meter.ranks()[0].seconds, 99);
  EXPECT_EQ(meter.silence(), 0);
}

TEST(SilenceMeter, TakesTheWordOfARankThatAnswersAndCountsForOneThatDoesNot) {
  SilenceMeter meter(3, 0, 5);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    RankStatus slow = status(1, i, 8, 3, false);
    slow.silent = static_cast<double>(i) + 30;
    meter.pass(1, status(0, i, 4, 4, true), Statuses{{}, slow, status(2, 1, 8, 3, false)});
  }
  EXPECT_EQ(meter.ranks()[1].seconds, 50);
  EXPECT_TRUE(meter.ranks()[1].answers);
  EXPECT_EQ(meter.ranks()[2].seconds, 19);
  EXPECT_FALSE(meter.ranks()[2].answers);
  EXPECT_EQ(meter.silence(), 19);
}

TEST(SilenceMeter, DoesNotCountRanksThatWaitPatiently) {
  SilenceMeter meter(2, 0, 5);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    RankStatus own = status(0, i, 4, 4, true);
    own.patient = true;
    meter.pass(1, own, Statuses{{}, status(1, 1, 8, 3, false)});
  }
  EXPECT_EQ(meter.ranks()[0].seconds, 0);
  EXPECT_EQ(meter.silence(), 19);  // the other one is stuck
  RankStatus other = status(1, 50, 8, 3, true), own = status(0, 50, 4, 4, true);
  other.patient = own.patient = true;
  meter.pass(1, own, Statuses{{}, other});
  EXPECT_EQ(meter.silence(), 0);  // all are patient
}

TEST(SilenceMeter, LeavesTheWordToTheFirstRankThatAnswers) {
  SilenceMeter meter(3, 2, 5);
  const auto ask = [&](std::uint64_t beat_of_1) {
    meter.pass(4, status(2, 9, 1, 1, true),
               Statuses{status(0, 1, 1, 1, true), status(1, beat_of_1, 1, 1, true), {}});
  };
  ask(1), ask(2), ask(3);
  EXPECT_FALSE(meter.reports_hang());  // rank 0 has fallen silent, rank 1 answers
  ask(3), ask(3);
  EXPECT_TRUE(meter.reports_hang());
}

// What three ranks know of each other.
std::vector<RankSilence> known(std::vector<RankStatus> statuses) {
  std::vector<RankSilence> ranks;
  for (RankStatus& p : statuses)
    ranks.push_back({.known = true, .answers = true, .seconds = 61, .status = p});
  return ranks;
}

TEST(HangReport, NamesTheCollectiveAndWhoHasNotArrived) {
  auto ranks =
      known({status(0, 1, 1, 12, true), status(1, 1, 1, 11, false), status(2, 1, 1, 12, true)});
  ranks[1].answers = false;
  EXPECT_THAT(late_ranks(ranks), ElementsAre(1));
  const std::string report = hang_report(ranks, 0, 600, "run/checkpoints/step-000000005.h5");
  EXPECT_EQ(report,
            "tpudist: error: nothing was finished for 600 s (dist.timeout): ranks 0, 2 wait in "
            "collective 12 (all_gather), rank 1 has not arrived\n"
            "tpudist: rank 1 (here, process 101): training, step 7, after collective 11 "
            "(all_gather, 2.0 KiB); its process is stopped, gone or cut off\n"
            "tpudist: rank 0 (here, process 100): training, step 7, in collective 12 (all_gather, "
            "2.0 KiB)\n"
            "tpudist: the newest checkpoint is run/checkpoints/step-000000005.h5; go on with "
            "--resume\n");
  EXPECT_EQ(silence_line(ranks, 0),
            "rank 1 silent for 61 s: here, training, step 7, after collective 11 (all_gather, "
            "2.0 KiB); its process is stopped, gone or cut off");
}

TEST(HangReport, CallsARankLateThatIsStillInAnEarlierCollective) {
  const auto ranks = known({status(0, 1, 1, 12, true), status(1, 1, 1, 11, true)});
  EXPECT_THAT(late_ranks(ranks), ElementsAre(1));
  // One that has left the collective already was there.
  EXPECT_THAT(late_ranks(known({status(0, 1, 1, 12, true), status(1, 1, 1, 12, false)})),
              ElementsAre(1));
  EXPECT_THAT(late_ranks(known({status(0, 1, 1, 12, true), status(1, 1, 1, 13, false)})),
              IsEmpty());
}

// It was stopped within the collective, or another one left it before.
TEST(HangReport, NamesARankThatDoesNotAnswerWhereverItIs) {
  auto ranks =
      known({status(0, 1, 1, 12, true), status(1, 1, 1, 12, true), status(2, 1, 1, 13, true)});
  ranks[1].answers = false;
  EXPECT_THAT(late_ranks(ranks), ElementsAre(1));
  EXPECT_THAT(hang_report(ranks, 0, 600, ""),
              HasSubstr("ranks 0, 2 wait in collective 13 (all_gather), rank 1 has not arrived"));
  ranks[2].status.collective = 12;
  EXPECT_THAT(hang_report(ranks, 0, 600, ""),
              HasSubstr("ranks 0, 2 wait in collective 12 (all_gather), rank 1 does not answer"));
}

TEST(HangReport, DoesNotBlameARankThatWaitsItself) {
  const auto ranks =
      known({status(0, 1, 1, 12, true), status(1, 1, 1, 11, false), status(2, 1, 1, 11, true)});
  EXPECT_THAT(late_ranks(ranks), ElementsAre(1));
  EXPECT_THAT(hang_report(ranks, 0, 600, ""),
              HasSubstr("ranks 0, 2 wait in collective 12 (all_gather), rank 1 has not arrived"));
}

TEST(HangReport, SaysWhenAllAreThere) {
  const auto ranks = known({status(0, 1, 1, 12, true), status(1, 1, 1, 12, true)});
  EXPECT_THAT(late_ranks(ranks), IsEmpty());
  EXPECT_THAT(hang_report(ranks, 1, 600, ""),
              AllOf(HasSubstr("ranks 0, 1 wait in collective 12"),
                    HasSubstr("which all have reached"), HasSubstr("tpudist: rank 0 (here, "),
                    HasSubstr("tpudist: rank 1 (here, "), Not(HasSubstr("checkpoint"))));
}

TEST(HangReport, DoesNotGuessWhereNothingIsKnown) {
  std::vector<RankSilence> ranks(3);
  ranks[1] = {.known = true, .answers = true, .seconds = 9, .status = status(1, 1, 1, 12, true)};
  EXPECT_THAT(
      hang_report(ranks, 1, 9, ""),
      AllOf(HasSubstr("rank 1 waits in collective 12 (all_gather); of ranks 0, 2 nothing is known"),
            Not(HasSubstr("arrived")), Not(HasSubstr("all have reached"))));
  EXPECT_THAT(hang_report(ranks, 1, 9, "", std::vector<std::string>{"node8", "node7", "node7"}),
              HasSubstr("; of ranks 0, 2 (node7, node8) nothing is known"));
  ranks[1].status.waiting = false;
  EXPECT_THAT(hang_report(ranks, 1, 9, ""), HasSubstr("(dist.timeout): rank 1 hangs"));
}

TEST(SilenceLine, CountsSeveralLateRanksTogether) {
  auto ranks =
      known({status(0, 1, 1, 12, true), status(1, 1, 1, 11, false), status(2, 1, 1, 10, false)});
  ranks[2].seconds = 70;
  EXPECT_THAT(silence_line(ranks, 0),
              AllOf(HasSubstr("ranks 1, 2 silent for 70 s; rank 2 (here, process 102): training")));
}

}  // namespace
}  // namespace tpudist
