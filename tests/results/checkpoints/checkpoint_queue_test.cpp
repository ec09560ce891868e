#include "results/checkpoints/checkpoint_queue.hpp"

#include <atomic>
#include <future>
#include <stdexcept>

#include "core/error.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/watched_files.hpp"

namespace tpudist::test {
namespace {

using Kind = CheckpointQueue::Kind;

ParameterTable queue_table() {
  ParameterTable table;
  table.add("weight", {16});
  return table;
}

void fill(Checkpoint& checkpoint, std::int64_t step) {
  checkpoint.step = step;
  checkpoint.members = 1;
  checkpoint.parameters.assign(16, static_cast<float>(step));
  checkpoint.first_moment = checkpoint.second_moment = checkpoint.parameters;
  checkpoint.optimizer_steps = checkpoint.best_step = {step};
  checkpoint.best_score = {0.5};
  checkpoint.failed = {0};
  checkpoint.losses.assign(30, 0.5);
}

class CheckpointQueueTest : public ::testing::Test {
 protected:
  const TempDir folder_;
  const ParameterTable table_ = queue_table();
};

TEST_F(CheckpointQueueTest, WritesWhileItsOwnerGoesOn) {
  std::promise<void> released;
  std::shared_future<void> release(released.get_future());
  WatchedFileSystem files([release](const std::string&, const auto&) { release.wait(); });
  CheckpointQueue queue(table_, files);
  std::atomic<int> in_place = 0;
  fill(queue.copy(Kind::regular), 1);
  queue.write(Kind::regular, checkpoint_path(folder_.path(), 1), [&] { ++in_place; });
  // That of the other kind is another copy, which nobody waits for either.
  fill(queue.copy(Kind::best), 2);
  queue.write(Kind::best, best_checkpoint_path(folder_.path()));
  EXPECT_TRUE(queue.take_results().empty());
  EXPECT_EQ(in_place, 0);
  released.set_value();
  queue.wait();
  const auto results = queue.take_results();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].step, 1);
  EXPECT_EQ(results[1].kind, Kind::best);
  EXPECT_EQ(results[0].error + results[1].error, "");
  EXPECT_EQ(in_place, 1);
  EXPECT_EQ(CheckpointFile(checkpoint_path(folder_.path(), 1)).load(table_).parameters[3], 1);
  EXPECT_EQ(CheckpointFile(best_checkpoint_path(folder_.path())).load(table_).parameters[3], 2);
}

TEST_F(CheckpointQueueTest, WaitsForTheOneBeforeOfTheSameKind) {
  CheckpointQueue queue(table_, posix_file_system());
  for (std::int64_t step = 1; step <= 5; ++step) {
    fill(queue.copy(Kind::regular), step);
    queue.write(Kind::regular, checkpoint_path(folder_.path(), step));
  }
  queue.wait();
  for (std::int64_t step = 1; step <= 5; ++step) {
    EXPECT_EQ(CheckpointFile(checkpoint_path(folder_.path(), step)).load(table_).parameters[0],
              static_cast<float>(step));
  }
}

TEST_F(CheckpointQueueTest, KeepsErrorsForItsOwnerAndGoesOn) {
  std::atomic<bool> full = true;
  WatchedFileSystem files([&](const std::string& name, const auto&) {
    if (full && name == "write") throw IoError("no space left on device");
  });
  CheckpointQueue queue(table_, files);
  bool in_place = false;
  fill(queue.copy(Kind::regular), 1);
  queue.write(Kind::regular, checkpoint_path(folder_.path(), 1), [&] { in_place = true; });
  queue.wait();
  auto results = queue.take_results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].error, "no space left on device");
  EXPECT_FALSE(in_place);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  full = false;
  fill(queue.copy(Kind::regular), 2);
  queue.write(Kind::regular, checkpoint_path(folder_.path(), 2), [] { throw IoError("and then"); });
  queue.wait();
  results = queue.take_results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(results[0].error, HasSubstr("and then"));
  EXPECT_EQ(CheckpointFile(checkpoint_path(folder_.path(), 2)).load(table_).step, 2);
}

TEST_F(CheckpointQueueTest, FinishesWhatItWasGivenAndMakesTheFolder) {
  std::atomic<int> parts = 0;
  {
    CheckpointQueue queue(table_, posix_file_system(), [&] { ++parts; });
    fill(queue.copy(Kind::regular), 7);
    queue.write(Kind::regular, checkpoint_path(folder_ / "gone/checkpoints", 7));
  }
  EXPECT_EQ(CheckpointFile(checkpoint_path(folder_ / "gone/checkpoints", 7)).load(table_).step, 7);
  EXPECT_GE(parts, 1);
}

}  // namespace
}  // namespace tpudist::test
