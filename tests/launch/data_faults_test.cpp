// Shards that go bad, and disks that fail or are slow, while ranks train: one clear line of the
// rank that saw it, the right exit code, and no rank that stays behind.

#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/data/loading/dataset_case.hpp"
#include "tests/launch/ranks_case.hpp"

extern "C" void __ubsan_handle_dynamic_type_cache_miss() __attribute__((weak));

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

class DataFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    const std::string npz = (*folder_ / "npz").string();
    const auto add = [&](const std::string& split, const std::string& name, std::int64_t configs) {
      never_equal_configs(configs).write(fs::path(npz) / kLayout.folder() / split / (name + ".npz"),
                                         {.deflate_level = 1});
    };
    add("train", "resnet", 60'000);  // twice as much as the cache of chunks takes
    add("train", "unet", 100);
    add("valid", "bert", 100);
    output_of(run_program("convert " + npz + " " + (*folder_ / "shards").string() + " 2>&1"));
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  // A copy of the shards for each test to spoil.
  void SetUp() override {
    fs::copy(*folder_ / "shards", shards_, fs::copy_options::recursive);
    std::ofstream(own_ / "run.yaml")
        << "name: tiny\n"
        << "data: {shards: " << shards_.string() << ", collection: \"layout:xla:random\","
        << " cache: stream, cache_bytes: 1048576}\n"
        << "batch: {slates: 4, configs: 6}\n"
        << "model: {preset: latenciaga_xla, blocks: [{width: 16}]}\n"
        << "loss: {list_mle: {}}\n"
        << "schedule: {name: constant}\n"
        << "optimizer: {name: adam, lr: 1e-3}\n"
        << "train: {steps: 1000000, log_every: 1}\n";
  }

  std::string train() const {
    return "train " + (own_ / "run.yaml").string() + " --run-dir " + (own_ / "run").string();
  }

  // All shards of a split.
  std::vector<fs::path> shards_of(const std::string& split) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(shards_ / "layout/xla/random" / split))
      files.push_back(entry.path());
    return files;
  }

  void expect_data_error(const Outcome& outcome, const std::string& reason) const {
    EXPECT_EQ(outcome.exit_code, 3) << outcome.output;
    EXPECT_THAT(outcome.output,
                AllOf(ContainsRegex("tpudist: error( \\(rank [0-9]+\\))?: [^\n]*" + reason),
                      Not(HasSubstr("Segmentation"))));
  }

  // Ranks under faults of tests/support/faulty_io.hpp that concern shards.
  MpiProgram start_with(const std::string& kind, int ranks, const std::string& more = "",
                        const fs::path& switch_file = {}) const {
    const std::string where = switch_file.empty() ? "" : ":" + switch_file.string();
    const RankStart start{
        train() + " " + more,
        "-x LD_PRELOAD=" TPUDIST_FAULTY_IO " -x TPUDIST_FAULTY_IO=" + kind + ":shard-" + where};
    return MpiProgram(std::vector<RankStart>(static_cast<std::size_t>(ranks), start));
  }

  // Asks the first rank to stop, and expects the checkpoint of a run that went on until then.
  void expect_stop(MpiProgram& job) const {
    ASSERT_EQ(kill(job.ranks().at(0), SIGUSR2), 0);
    EXPECT_THAT(output_of(job.finish(), 85), HasSubstr("stopped on request after step"));
  }

  static inline TempDir* folder_ = nullptr;
  const TempDir own_;
  const fs::path shards_ = own_ / "shards";
};

TEST_F(DataFaults, ADamagedShardIsFoundAtTheStart) {
  const fs::path shard = shards_of("train").front();
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(shard) / 2));
  file.write("damage", 6);
  file.close();
  for (const int ranks : {0, 1, 2})
    expect_data_error(run_ranks(ranks, train()), "its hash differs from the manifest's");
}

TEST_F(DataFaults, AMissingOrShortenedShardIsFoundAtTheStart) {
  const fs::path shard = shards_of("train").front();
  fs::resize_file(shard, fs::file_size(shard) - 1);
  for (const int ranks : {0, 2})
    expect_data_error(run_ranks(ranks, train()), "bytes, but the manifest says");
  fs::remove(shard);
  for (const int ranks : {0, 2})
    expect_data_error(run_ranks(ranks, train()), "is missing, but the manifest lists it");
}

// In the midst of training: all open shards lose their content.
TEST_F(DataFaults, ShardsThatShrinkEndAllRanks) {
  for (const int ranks : {1, 2}) {
    MpiProgram job(std::vector<RankStart>(static_cast<std::size_t>(ranks), {train()}));
    ASSERT_TRUE(job.wait_for("step       4/"));
    for (const fs::path& shard : shards_of("train")) fs::resize_file(shard, 100);
    for (const fs::path& shard : shards_of("valid")) fs::resize_file(shard, 100);
    const Outcome outcome = job.finish();
    expect_data_error(outcome, "shard-");
    fs::remove_all(own_ / "run");
    fs::remove_all(shards_);
    fs::copy(*folder_ / "shards", shards_, fs::copy_options::recursive);
  }
}

// A disk that fails while all ranks stream from it.
TEST_F(DataFaults, ShardsThatCannotBeReadEndAllRanks) {
  for (const int ranks : {1, 2}) {
    const fs::path broken = own_ / "broken";
    MpiProgram job = start_with("error=0", ranks, "", broken);
    ASSERT_TRUE(job.wait_for("step       4/"));
    std::ofstream(broken).put('1');
    EXPECT_THAT(output_of(job.finish(), 1),
                AllOf(ContainsRegex("tpudist: error[^\n]*: cannot read "
                                    "[^\n]*shard-[^\n]*/config_feat: Input/output error\n"),
                      Not(HasSubstr("Segmentation"))));
    fs::remove(broken);
    fs::remove_all(own_ / "run");
  }
}

// What is open stays open.
TEST_F(DataFaults, ShardsThatVanishAreReadToTheEnd) {
  MpiProgram job(std::vector<RankStart>(2, {train()}));
  ASSERT_TRUE(job.wait_for("step       4/"));
  fs::remove_all(shards_);
  ASSERT_TRUE(job.wait_for("step      12/"));
  expect_stop(job);
  EXPECT_THAT(output_of(run_ranks(2, train() + " --resume"), 2),
              HasSubstr("there is no such folder of shards"));
}

TEST_F(DataFaults, WhatIsNoFileInThePlaceOfAShardIsNamed) {
  const fs::path shard = shards_of("train").front();
  fs::remove(shard);
  fs::create_directory(shard);
  expect_data_error(run_ranks(0, train()), shard.filename().string());
  fs::remove(shard);
  ASSERT_EQ(mkfifo(shard.c_str(), 0600), 0);  // would hold whoever opens it
  expect_data_error(run_ranks(0, train()), shard.filename().string());
}

// Reads that take longer than dist.timeout in sum, but not each by itself.
TEST_F(DataFaults, ASlowDiskIsWaitedFor) {
  const std::string more = "train.steps=16 train.last_evaluation=none dist.timeout=2";
  const std::string expected = value_of(run_ranks(0, train() + " " + more).output, "parameters: ");
  ASSERT_EQ(expected.size(), 16u);
  for (const int ranks : {1, 2}) {
    const fs::path slow = own_ / "slow";
    fs::remove_all(own_ / "run");
    MpiProgram job = start_with("slow=60", ranks, more, slow);
    ASSERT_TRUE(job.wait_for("step       4/"));
    std::ofstream(slow).put('1');
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = job.finish();
    EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(value_of(outcome.output, "parameters: "), expected);
    // Of two ranks the first may wait for the other one instead.
    if (ranks == 1) {
      EXPECT_THAT(outcome.output,
                  ContainsRegex("step      16/16 [^\n]* wait (9[0-9]|100)\\.[0-9] %"));
    }
    fs::remove(slow);
  }
}

// A single read that takes as long as nobody should be silent, and the disk answers again.
TEST_F(DataFaults, AReadThatTakesLongIsToldAndWaitedFor) {
  const fs::path slow = own_ / "slow";
  MpiProgram job = start_with("slow=3000", 1, "dist.timeout=20", slow);
  ASSERT_TRUE(job.wait_for("step       4/"));
  std::ofstream(slow).put('1');
  ASSERT_TRUE(job.wait_for("warning rank 0 silent for "));
  ASSERT_TRUE(job.wait_for(", training, step "));
  fs::remove(slow);
  job.forget();
  ASSERT_TRUE(job.wait_for("  loss "));
  expect_stop(job);
}

TEST_F(DataFaults, AReadThatNeverEndsEndsAllRanks) {
  for (const int ranks : {1, 2}) {
    const fs::path slow = own_ / "slow";
    MpiProgram job = start_with("slow=100000", ranks, "dist.timeout=2", slow);
    ASSERT_TRUE(job.wait_for("step       4/"));
    std::ofstream(slow).put('1');
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = job.finish();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2 + 8));
    EXPECT_EQ(outcome.exit_code, 86) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("nothing was finished for 2 s (dist.timeout)"));
    fs::remove(slow);
    fs::remove_all(own_ / "run");
  }
}

TEST_F(DataFaults, FewOpenFilesAreNamed) {
  if (__ubsan_handle_dynamic_type_cache_miss)
    GTEST_SKIP()
        << "to read a table of virtual functions, UBSan opens pipes; without them, it sees faults";
  // Of a command without MPI, which needs more of them by itself and aborts. The shell redirects
  // before it has few, since it needs more for that, and closes what the test was started with.
  EXPECT_THAT(
      output_of(run_program("verify " + shards_.string(),
                            "exec 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 4 && "),
                1),
      AllOf(HasSubstr("Too many open files"), HasSubstr("ulimit -n 4096")));
}

}  // namespace
}  // namespace tpudist::test
