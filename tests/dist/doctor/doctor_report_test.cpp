#include "dist/doctor/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RankFacts rank_facts() {
  RankFacts rank;
  rank.rank = 1;
  rank.host = "node\"7";
  rank.node = 2;
  rank.process = 1234;
  rank.threads = 3;
  rank.cores = {0, 1, 2, 5};
  rank.machine_cores = 8;
  rank.machine_memory = std::int64_t{64} << 30;
  rank.gpus = {"0123456789abcdef"};
  rank.device = 0;
  rank.nccl_libraries = {"/a/libnccl.so.2"};
  rank.mpi_threads = "funneled";
  rank.kernels = "avx2";
  rank.srun_tasks = 4;
  return rank;
}

JobFacts job_facts() {
  JobFacts facts;
  facts.ranks = {rank_facts(), rank_facts()};
  facts.versions = {{"LibTorch", "2.11.0"}, {"NCCL", "header 2.28.9"}};
  facts.folder = {"/runs", true, false, 5 << 20, ""};
  facts.all_reduce = {{"host", 8, 2e-6}, {"device", 1'000'000, 1e-3}};
  facts.memory = {{2, 2, 8e9, 12e9}};
  return facts;
}

TEST(RankFactsText, ComesBack) {
  const RankFacts back = parse_rank_facts(rank_facts_text(rank_facts()));
  EXPECT_EQ(rank_facts_text(back), rank_facts_text(rank_facts()));
  EXPECT_EQ(back.host, "node\"7");
  EXPECT_EQ(back.cores, rank_facts().cores);
  EXPECT_EQ(back.nccl_libraries, rank_facts().nccl_libraries);
}

TEST(NumberRanges, JoinNeighbours) {
  EXPECT_EQ(number_ranges({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(number_ranges({}), "");
}

// What each rank of a ring sends: twice (R - 1) / R of the data.
TEST(BusBandwidth, CountsWhatARankSends) {
  EXPECT_DOUBLE_EQ(bus_bandwidth({"host", 1000, 1e-3}, 4), 1.5e6);
  EXPECT_DOUBLE_EQ(bus_bandwidth({"host", 1000, 1e-3}, 1), 0);
}

TEST(DoctorText, ShowsEveryTable) {
  const std::string text =
      doctor_text(job_facts(), {{"no_file_locks", "no locks", "mount with locks", false},
                                {"no_pmix", "alone", "srun --mpi=pmix", true}});
  EXPECT_THAT(text, AllOf(HasSubstr("0 (01234567)"), HasSubstr("0-2, 5"), HasSubstr("64.0 GiB"),
                          HasSubstr("LibTorch"), HasSubstr("2.11.0"), HasSubstr("funneled"),
                          HasSubstr("5.0 MiB")));
  EXPECT_THAT(text, AllOf(HasSubstr(" 2.0 us"), HasSubstr(" 1.0 ms"), HasSubstr(" 1.0 GB/s"),
                          HasSubstr(" 12 GB/s"), HasSubstr(" 1.5\n")));
  EXPECT_THAT(text, HasSubstr("warning: no locks\n  mount with locks\nbroken: alone\n"));
  EXPECT_THAT(doctor_text(job_facts(), {}), HasSubstr("no warnings\n"));
}

// A time or speed of one moment is sure to two digits; JSON has what was measured.
TEST(DoctorText, RoundsWhatWasMeasured) {
  JobFacts facts = job_facts();
  facts.all_reduce = {
      {"host", 8, 9.96e-6}, {"host", 1'000'000, 123.4e-6}, {"host", 64'000'000, 1.2345}};
  facts.memory = {{2, 2, 8.123e9, 15.678e9}};
  const std::string text = doctor_text(facts, {});
  EXPECT_THAT(text, AllOf(HasSubstr(" 10 us"), HasSubstr(" 120 us"), HasSubstr(" 1.2 s"),
                          HasSubstr(" 8.1 GB/s"), HasSubstr(" 0.052 GB/s")));
  EXPECT_THAT(text, AllOf(HasSubstr(" 16 GB/s"), HasSubstr(" 1.9\n")));
}

TEST(DoctorJson, HasTheSame) {
  const auto json = doctor_json(job_facts(), {{"no_pmix", "alone", "srun --mpi=pmix", true}});
  EXPECT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["ranks"][0]["cores"], nlohmann::json({0, 1, 2, 5}));
  EXPECT_EQ(json["versions"]["LibTorch"], "2.11.0");
  EXPECT_EQ(json["folder"]["locks"], false);
  EXPECT_EQ(json["all_reduce"][1]["bus_bytes_per_second"], 1e9);
  EXPECT_EQ(json["memory"][0]["together_bytes_per_second"], 12e9);
  EXPECT_EQ(json["warnings"][0]["kind"], "no_pmix");
  EXPECT_EQ(json["warnings"][0]["broken"], true);
}

}  // namespace
}  // namespace tpudist
