#include "dist/doctor/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Ranks on one node of 8 cores, two cores each, with nothing to complain about.
JobFacts healthy(int ranks) {
  JobFacts facts;
  for (int r = 0; r < ranks; ++r) {
    RankFacts rank;
    rank.rank = rank.local_rank = r;
    rank.host = "node7";
    rank.cores = {2 * r, 2 * r + 1};
    rank.machine_cores = 8;
    rank.machine_memory = 64 * kGiB;
    rank.mpi_threads = "funneled";
    rank.kernels = "avx2";
    facts.ranks.push_back(rank);
  }
  facts.folder = {"/runs", true, true, 100 * kGiB, ""};
  if (ranks > 1) facts.all_reduce = {{"host", 8, 2e-6}, {"host", 64 << 20, 0.05}};
  return facts;
}

std::vector<std::string> kinds(const JobFacts& facts) {
  std::vector<std::string> kinds;
  for (const DoctorWarning& warning : doctor_warnings(facts)) kinds.push_back(warning.kind);
  return kinds;
}

DoctorWarning only(const JobFacts& facts) {
  const std::vector<DoctorWarning> warnings = doctor_warnings(facts);
  EXPECT_EQ(warnings.size(), 1u);
  return warnings.empty() ? DoctorWarning{} : warnings.front();
}

TEST(DoctorWarnings, AreNoneWhereAllIsWell) {
  EXPECT_THAT(kinds(healthy(4)), IsEmpty());
}

// What is wrong with four healthy ranks on one node, and the only warning.
struct Case {
  void (*change)(JobFacts& facts);
  std::string kind, what, advice = "";
  bool broken = false;
};

void for_ranks(JobFacts& facts, void (*change)(RankFacts& rank)) {
  for (RankFacts& rank : facts.ranks) change(rank);
}

TEST(DoctorWarnings, SayWhatIsWrongAndWhatToDo) {
  const Case cases[] = {
      {[](JobFacts& facts) { for_ranks(facts, [](RankFacts& rank) { rank.cores = {5}; }); },
       "one_core", "all 4 ranks on node7 are bound to core 5", "--bind-to none"},
      {[](JobFacts& facts) {
         for_ranks(facts, [](RankFacts& rank) {
           rank.cores = {0, 1};
           rank.machine_cores = 2;
         });
       },
       "more_ranks_than_cores", "4 ranks on node7, which gives them 2 cores", "--oversubscribe"},
      {[](JobFacts& facts) { for_ranks(facts, [](RankFacts& rank) { rank.cores = {rank.rank}; }); },
       "idle_cores", ""},
      {[](JobFacts& facts) {  // each node by itself
         facts.ranks[2].node = facts.ranks[3].node = 1;
         facts.ranks[2].host = facts.ranks[3].host = "node8";
         facts.ranks[2].cores = facts.ranks[3].cores = {0};
         facts.ranks[0].cores = {0, 1, 2, 3, 4};
       },
       "one_core", "all 2 ranks on node8"},
      {[](JobFacts& facts) {
         for_ranks(facts, [](RankFacts& rank) {
           rank.gpus = {"aa", "bb", "cc"};
           rank.device = std::min(rank.rank, 2);
         });
       },
       "shared_gpu", "ranks 2, 3 on node7 share GPU cc"},
      {[](JobFacts& facts) { for_ranks(facts, [](RankFacts& rank) { rank.gpus = {"aa"}; }); },
       "unused_gpus", "node7 has 1 GPU for 4 ranks"},
      {[](JobFacts& facts) {
         facts.ranks[1].nccl_libraries = {"/a/libnccl.so.2", "/b/libnccl.so.2"};
       },
       "two_nccls", "rank 1 has loaded 2 NCCLs: /a/libnccl.so.2, /b/"},
      {[](JobFacts& facts) { facts.nccl_agrees = false; }, "nccl_header", ""},
      {[](JobFacts& facts) { facts.ranks[3].mpi_threads = "single"; }, "mpi_threads", "", "", true},
      {[](JobFacts& facts) { facts.folder.locks = false; }, "no_file_locks", ""},
      {[](JobFacts& facts) { facts.folder.free_bytes = 1 << 20; }, "little_space",
       "/runs has 1.0 MiB left"},
      {[](JobFacts& facts) {
         facts.folder = {"/runs", false, false, 0, "Read-only file system"};
       },
       "folder_not_writable", "/runs cannot be written: Read-only file system", "", true},
      {[](JobFacts& facts) { facts.ranks[2].kernels = "avx512"; }, "mixed_cpus",
       "rank 2 computes with other kernels (avx512)"},
      {[](JobFacts& facts) { facts.all_reduce[0].seconds = 0.02; }, "slow_messages",
       "an all-reduce of 8 bytes takes 20 ms"}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.kind);
    JobFacts facts = healthy(4);
    one.change(facts);
    const DoctorWarning warning = only(facts);
    EXPECT_EQ(warning.kind, one.kind);
    EXPECT_THAT(warning.what, HasSubstr(one.what));
    EXPECT_THAT(warning.advice, HasSubstr(one.advice));
    EXPECT_EQ(warning.broken, one.broken);
  }
}

// On one node mpirun sees at once what ends.
TEST(DoctorWarnings, TellOfAnMpirunThatWaitsForALostNode) {
  JobFacts facts = healthy(4);
  for (RankFacts& rank : facts.ranks) rank.mpirun_patience = 480;
  EXPECT_THAT(kinds(facts), IsEmpty());
  facts.ranks[3].node = 1;
  facts.ranks[3].cores = {0, 1, 2, 3, 4, 5, 6, 7};
  const DoctorWarning warning = only(facts);
  EXPECT_EQ(warning.kind, "slow_mpirun");
  EXPECT_EQ(warning.what, "mpirun gives up a node that does not answer only after 480 s");
  EXPECT_THAT(warning.advice, HasSubstr("--mca oob_tcp_keepalive_time 60"));
  facts.ranks[0].mpirun_patience = -1;
  EXPECT_EQ(only(facts).what, "mpirun never gives up a node that does not answer");
  for (const int patience : {0, 120}) {
    facts.ranks[0].mpirun_patience = patience;
    EXPECT_THAT(kinds(facts), IsEmpty());
  }
}

TEST(DoctorWarnings, TellOfAQuotaBelowTheRanks) {
  JobFacts facts = healthy(4);
  for (RankFacts& rank : facts.ranks) rank.cpu_quota = 0.5;
  const DoctorWarning warning = only(facts);
  EXPECT_EQ(warning.kind, "cpu_quota");
  EXPECT_THAT(warning.what, HasSubstr("4 ranks on node7 with a CPU quota of 0.5 (control group)"));
  EXPECT_THAT(warning.advice, HasSubstr("or start fewer ranks"));
  JobFacts alone = healthy(1);
  alone.ranks[0].cpu_quota = 0.5;
  EXPECT_THAT(only(alone).advice, Not(HasSubstr("fewer")));
  for (RankFacts& rank : facts.ranks) rank.cpu_quota = 4;
  EXPECT_THAT(kinds(facts), IsEmpty());
}

TEST(DoctorWarnings, TellOfGpusWithoutKernelsForThem) {
  JobFacts facts = healthy(4);
  facts.runs_on_gpus = false;
  EXPECT_THAT(kinds(facts), IsEmpty());
  for (RankFacts& rank : facts.ranks) rank.gpus = {"aa"};
  const DoctorWarning warning = only(facts);
  EXPECT_EQ(warning.kind, "no_kernels");
  EXPECT_THAT(warning.what, HasSubstr("node7 has 1 GPU, and this program was built without nvcc"));
}

TEST(DoctorWarnings, CallSrunWithoutPmixBroken) {
  JobFacts facts = healthy(1);
  facts.ranks[0].cores = {0, 1, 2, 3, 4, 5, 6, 7};
  facts.ranks[0].srun_tasks = 8;
  const DoctorWarning warning = only(facts);
  EXPECT_EQ(warning.kind, "no_pmix");
  EXPECT_TRUE(warning.broken);
  EXPECT_THAT(warning.advice, HasSubstr("--mpi=pmix"));
  facts = healthy(4);
  for (RankFacts& rank : facts.ranks) rank.srun_tasks = 4;
  EXPECT_THAT(kinds(facts), IsEmpty());
}

TEST(DoctorWarnings, CompareTheMemoryLimitWithTheRanks) {
  JobFacts facts = healthy(4);
  for (RankFacts& rank : facts.ranks) rank.memory_limit = 2 * kGiB;
  const DoctorWarning warning = only(facts);
  EXPECT_EQ(warning.kind, "little_memory");
  EXPECT_THAT(warning.what, HasSubstr("may use 2.0 GiB (limit of the control group) for 4 ranks"));
  for (RankFacts& rank : facts.ranks) rank.memory_limit = 4 * kGiB;
  EXPECT_THAT(kinds(facts), IsEmpty());
}

TEST(DoctorWarnings, PutWhatIsBrokenFirst) {
  JobFacts facts = healthy(4);
  facts.nccl_agrees = false;
  facts.ranks[0].kernels = "other";
  facts.folder.writable = false;
  EXPECT_EQ(kinds(facts).front(), "folder_not_writable");
  EXPECT_EQ(kinds(facts).size(), 3u);
}

}  // namespace
}  // namespace tpudist
