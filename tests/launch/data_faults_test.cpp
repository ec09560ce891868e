// Shards that go bad while ranks train: one clear line of the rank that saw it, the exit code of bad
// data, and no rank that stays behind.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/data/loading/dataset_case.hpp"
#include "tests/launch/mpi_program.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

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
    const Outcome converted =
        run_program("convert " + npz + " " + (*folder_ / "shards").string() + " 2>&1");
    ASSERT_EQ(converted.exit_code, 0) << converted.output;
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
                ContainsRegex("tpudist: error( \\(rank [0-9]+\\))?: [^\n]*" + reason));
    EXPECT_THAT(outcome.output, Not(HasSubstr("Segmentation")));
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

TEST_F(DataFaults, FewOpenFilesAreNamed) {
  // Of a command without MPI, which needs more of them by itself and aborts. The shell redirects before it
  // has few, since it needs more for that, and closes what the test was started with.
  const Outcome outcome =
      run_program("verify " + shards_.string(),
                  "exec 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 4 && ");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("Too many open files"));
  EXPECT_THAT(outcome.output, HasSubstr("ulimit -n 4096"));
}

}  // namespace
}  // namespace tpudist::testing
