#include "dist/collectives/nccl_communicator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "dist/collectives/cuda_check.hpp"
#include "tests/dist/communicator_calls.hpp"
#include "tests/dist/fake_cuda/fake_job.hpp"

namespace tpudist {
namespace {

using fake::Fault;
using fake::JobOptions;
using fake::JobResult;
using fake::Schedule;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr Schedule kSchedules[] = {Schedule::early, Schedule::late, Schedule::random};
constexpr int kRanks = 3;
constexpr double kTimeout = 0.1;  // seconds

TEST(NcclCommunicator, DoesAllCallsWhateverTheStreamsDo) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const Schedule schedule : kSchedules) {
      for (std::uint64_t seed = 0; seed < (schedule == Schedule::random ? 5 : 1); ++seed) {
        const JobResult result = fake::run_job({ranks, schedule, seed}, [](Communicator& world) {
          const auto nccl = make_nccl_communicator(world, world.rank());
          EXPECT_EQ(nccl->rank(), world.rank());
          EXPECT_EQ(nccl->size(), world.size());
          check_all_calls(*nccl);
        });
        EXPECT_THAT(result.errors, IsEmpty());
        EXPECT_THAT(result.mistakes, IsEmpty());
      }
    }
  }
}

TEST(NcclCommunicator, TellsTheWatchdogWhichCallItIsIn) {
  const JobResult result = fake::run_job({2}, [](Communicator& world) {
    RankActivity activity;
    const auto nccl = make_nccl_communicator(world, world.rank(), &activity);
    EXPECT_EQ(activity.status().call, "ncclCommInitRankConfig");
    const DeviceBuffer sums(40);
    nccl->all_reduce(sums.as<float>(), ReduceOp::sum);
    EXPECT_EQ(describe(activity.status()), "start, after collective 2 (ncclAllReduce, 40 B)");
  });
  EXPECT_THAT(result.errors, IsEmpty());
}

// A sleep takes at least 20 us, and with what wakes the thread about 70. Of many tries one is not
// disturbed.
TEST(Poll, LooksAgainAtOnceBeforeItSleeps) {
  using Clock = std::chrono::steady_clock;
  Clock::duration shortest = std::chrono::seconds(1);
  for (int i = 0; i < 1000; ++i) {
    int looks = 0;
    const auto begin = Clock::now();
    poll("nothing", 0, [&] { return ++looks == 3; });
    shortest = std::min(shortest, Clock::now() - begin);
  }
  EXPECT_LT(shortest, std::chrono::microseconds(20));
}

TEST(NcclCommunicator, RefusesDevicesOnAllRanks) {
  for (const int wrong : {0, 7}) {
    const JobResult result = fake::run_job({2}, [&](Communicator& world) {
      make_nccl_communicator(world, world.rank() == 0 ? 0 : wrong);
    });
    ASSERT_EQ(result.errors.size(), 2);
    EXPECT_THAT(result.errors[0], HasSubstr(wrong == 0 ? "ranks 0 and 1 are on the same GPU"
                                                       : "CUDA device 7 is not there (2 visible)"));
    EXPECT_THAT(result.mistakes, IsEmpty());
  }
}

// What a training does with NCCL. Counts the ranks that got through before anything is closed.
void train(Communicator& world, std::atomic<int>& through) {
  const auto nccl =
      make_nccl_communicator(world, world.rank(), nullptr, kTimeout);
  const DeviceBuffer row(kRanks * 64), rows(kRanks * 64);
  nccl->all_reduce(row.as<float>(), ReduceOp::sum);
  const std::vector<std::int64_t> counts(kRanks, 16);
  nccl->all_to_all(std::span<const float>(row.as<float>()), counts, rows.as<float>(), counts);
  nccl->all_gather(std::span<const float>(row.as<float>().first(16)), rows.as<float>(), counts);
  ++through;
}

struct Met {
  JobResult result;
  bool closing = false;  // all ranks had done their work, but perhaps the one with the fault
};

Met train_with(const Fault& fault) {
  std::atomic<int> through = 0;
  Met met;
  const Schedule schedule = kSchedules[fault.call % 3];
  met.result = fake::run_job({kRanks, schedule, 1, fault},
                             [&](Communicator& world) { train(world, through); });
  met.closing = through >= kRanks - 1;
  return met;
}

int calls_of(int rank) {
  const Met met = train_with({});
  EXPECT_THAT(met.result.errors, IsEmpty());
  EXPECT_TRUE(met.closing);
  return met.result.calls[rank];
}

// The job ends in time, and nobody touches the GPU after an error.
void expect_end(const Met& met, const Fault& fault) {
  SCOPED_TRACE(testing::Message() << met.result.faulted << ", call " << fault.call << " of rank "
                                  << fault.rank);
  EXPECT_THAT(met.result.faulted, Not(IsEmpty()));
  EXPECT_THAT(met.result.mistakes, IsEmpty());
  EXPECT_LT(met.result.seconds, 2 * kTimeout + 2);
  if (!met.closing) EXPECT_THAT(met.result.errors, Not(IsEmpty()));
}

TEST(NcclCommunicator, AnErrorOfAnyCallEndsTheJobWithItsText) {
  for (const int rank : {0, kRanks - 1}) {
    const int calls = calls_of(rank);
    for (int call = 1; call <= calls; ++call) {
      const Fault fault{Fault::Kind::error, rank, call};
      const Met met = train_with(fault);
      expect_end(met, fault);
      if (met.result.errors.empty()) continue;
      const std::string who = "rank " + std::to_string(rank) + ": ";
      EXPECT_THAT(met.result.errors,
                  Contains(AllOf(StartsWith(who), AnyOf(HasSubstr("unspecified launch failure"),
                                                        HasSubstr("unhandled system error"),
                                                        HasSubstr("out of memory")))));
      if (met.result.errors.size() == 1) EXPECT_THAT(met.result.errors[0], StartsWith(who));
    }
  }
}

TEST(NcclCommunicator, AnAsynchronousErrorEndsTheJobWithItsText) {
  const int calls = calls_of(1);
  for (int call = 1; call <= calls; ++call) {
    const Fault fault{Fault::Kind::async_error, 1, call};
    const Met met = train_with(fault);
    expect_end(met, fault);
    if (met.closing) continue;
    EXPECT_THAT(met.result.errors[0],
                AllOf(StartsWith("rank 1: "), HasSubstr("failed: unhandled system error")));
  }
}

TEST(NcclCommunicator, ALostRankEndsTheJob) {
  const int calls = calls_of(1);
  for (int call = 1; call <= calls; call += 3) {
    const Fault fault{Fault::Kind::lost, 1, call};
    expect_end(train_with(fault), fault);
  }
}

TEST(NcclCommunicator, ADeviceThatStandsStillEndsTheJob) {
  const int calls = calls_of(1);
  for (int call = 1; call <= calls; call += 3) {
    const Fault fault{Fault::Kind::stuck, 1, call};
    expect_end(train_with(fault), fault);
  }
}

TEST(NcclCommunicator, SaysWhichCallDidNotFinish) {
  const JobResult result = fake::run_job({2}, [](Communicator& world) {
    const auto nccl =
        make_nccl_communicator(world, world.rank(), nullptr, kTimeout);
    const DeviceBuffer sums(8);
    world.barrier();
    if (world.rank() == 0) nccl->all_reduce(sums.as<float>(), ReduceOp::sum);
    world.barrier();
  });
  EXPECT_THAT(result.errors,
              ElementsAre("rank 0: ncclAllReduce has not finished within 0.1s (dist.timeout)"));
  EXPECT_THAT(result.mistakes, IsEmpty());
}

// An error that has nothing to do with the GPU: nobody waits in a destructor.
TEST(NcclCommunicator, IsLeftAloneByAnyError) {
  const JobResult result = fake::run_job({2}, [](Communicator& world) {
    const auto nccl =
        make_nccl_communicator(world, world.rank(), nullptr, 60);
    const DeviceBuffer sums(8);
    if (world.rank() == 1) throw DataError("array 'node_feat' has a NaN");
    nccl->all_reduce(sums.as<float>(), ReduceOp::sum);
  });
  EXPECT_THAT(result.errors, ElementsAre("rank 1: array 'node_feat' has a NaN"));
  EXPECT_THAT(result.mistakes, IsEmpty());
  EXPECT_LT(result.seconds, 5);
}

}  // namespace
}  // namespace tpudist
