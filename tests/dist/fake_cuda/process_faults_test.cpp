#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "core/numbers.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int exit_code = -1;
  double seconds = 0;
  std::string output;
};

Outcome run_processes(int ranks, double timeout, const std::string& fault,
                      const std::string& environment = "") {
  const TempDir folder;
  const std::string command =
      (fault.empty() ? "" : "TPUDIST_FAULT='" + fault + "' ") + environment +
      " "
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_btl_vader_single_copy_mechanism=none timeout 30 " TPUDIST_MPIRUN
      " --bind-to none --oversubscribe -np " +
      std::to_string(ranks) + " " TPUDIST_NCCL_CHECK " " + folder.path().string() + " " +
      std::to_string(timeout) + " 2>&1";
  Outcome outcome;
  const auto begin = std::chrono::steady_clock::now();
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  outcome.seconds = seconds_since(begin);
  return outcome;
}

TEST(ProcessFaults, WithoutOneTheSumsAreThoseOfAnyNumberOfRanks) {
  const Outcome one = run_processes(1, 60, ""), three = run_processes(3, 60, "");
  EXPECT_EQ(one.exit_code, 0) << one.output;
  EXPECT_THAT(one.output, HasSubstr("sums: "));
  EXPECT_THAT(three.output, HasSubstr(one.output));
}

TEST(ProcessFaults, OneGpuIsRefusedUnlessTheTestSwitchSharesIt) {
  const auto two = [](const std::string& environment) {
    return run_processes(2, 60, "", environment);
  };
  EXPECT_THAT(two("TPUDIST_CARD=one").output, HasSubstr("fewer GPUs than ranks"));
  const Outcome instances = two("TPUDIST_CARD=instances");
  EXPECT_EQ(instances.exit_code, 1);
  EXPECT_THAT(instances.output, HasSubstr("ranks 0 and 1 are on the same GPU (0000:1b:00.0 of '"));
  EXPECT_THAT(instances.output, HasSubstr("also where MIG divides GPUs"));
  const std::string shared = "TPUDIST_CARD=one TPUDIST_TEST_ONLY_SHARE_GPU=1 ";
  const Outcome known = two(shared);  // NCCL itself refuses
  EXPECT_EQ(known.exit_code, 1);
  EXPECT_THAT(known.output, HasSubstr("ncclCommInitRankConfig failed: invalid usage"));
  const Outcome sums = two(shared + "NCCL_HOSTID=any");
  EXPECT_EQ(sums.exit_code, 0) << sums.output;
  EXPECT_THAT(sums.output, HasSubstr(run_processes(1, 60, "").output));
}

// Each with the text of the first error and the exit code. `timeout`: dist.timeout, 60 s where the
// job must not wait for it.
struct Case {
  const char* fault;
  const char* text;
  int exit_code = 1;
  double timeout = 60;
};
constexpr int kHung = 86, kKilled = 128 + 9;

const Case kCases[] = {
    // In set-up, before there are communicators, and while others wait for one.
    {"error 1 cudaGetDeviceCount 1", "unspecified launch failure", 2},
    {"error 2 cudaSetDevice 1", "cudaSetDevice failed: unspecified launch failure"},
    {"error 0 ncclGetUniqueId 1", "error (rank 0): ncclGetUniqueId failed: unhandled system error"},
    {"error 1 cudaMalloc 1", "error (rank 1): cudaMalloc of 4 bytes failed: out of memory"},
    {"error 2 cudaMemsetAsync 1", "error (rank 2): cudaMemsetAsync failed"},
    {"error 1 ncclCommInitRankConfig 1", "error (rank 1): ncclCommInitRankConfig failed"},
    {"error 0 ncclCommGetAsyncError 1", "error (rank 0): ncclCommGetAsyncError failed"},
    {"lost 1 ncclCommInitRankConfig 1", "signal 9", kKilled},
    {"async_error 2 ncclCommGetAsyncError 1", "error (rank 2): ncclCommInitRankConfig failed"},
    {"stuck 1 ncclCommInitRankConfig 1", "ncclCommInitRankConfig", kHung, 1},
    // In the middle.
    {"error 1 ncclAllReduce 1", "error (rank 1): ncclAllReduce failed"},
    {"error 0 cudaMallocHost 2",
     "error (rank 0): cudaMallocHost of 2400 bytes failed: out of memory"},
    {"error 2 cudaMemcpy2DAsync 3", "error (rank 2): cudaMemcpy2DAsync failed"},
    {"error 1 ncclSend 2", "error (rank 1): ncclSend failed"},
    {"error 0 ncclGroupEnd 1", "error (rank 0): ncclSend, ncclRecv failed"},
    {"error 1 kernel 2", "error (rank 1): CUDA refused a kernel"},
    {"error 2 cudaEventQuery 4", "failed: unspecified launch failure"},
    {"lost 2 ncclRecv 1", "signal 9", kKilled},
    {"async_error 1 ncclGroupStart 2", "error (rank 1): ncclSend, ncclRecv failed"},
    {"stuck 2 cudaEventRecord 5", "has not", kHung, 1},
};

TEST(ProcessFaults, AnyOfTwentyEndsTheWholeJob) {
  constexpr std::size_t kCount = std::size(kCases);
  static_assert(kCount == 20);
  std::array<Outcome, kCount> outcomes;
  {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < kCount; i = next++)
        outcomes[i] = run_processes(3, kCases[i].timeout, kCases[i].fault);
    };
    const std::jthread first(work), second(work), third(work);  // each job waits most of its time
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const Case& one = kCases[i];
    const Outcome& outcome = outcomes[i];
    SCOPED_TRACE(std::string(one.fault) + ": " + outcome.output);
    EXPECT_EQ(outcome.exit_code, one.exit_code);
    EXPECT_THAT(outcome.output, HasSubstr(one.text));
    EXPECT_THAT(outcome.output, Not(HasSubstr("mistake")));
    EXPECT_THAT(outcome.output, Not(HasSubstr("sums: ")));
    EXPECT_LT(outcome.seconds, one.exit_code == kHung ? one.timeout + 5 : 5);
    std::printf("%5.1f s  exit code %3d  %s\n", outcome.seconds, outcome.exit_code, one.fault);
  }
}

}  // namespace
}  // namespace tpudist::test
