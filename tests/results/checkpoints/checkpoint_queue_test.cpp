#include "results/checkpoints/checkpoint_queue.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "core/error.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/watched_files.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using test::WatchedFileSystem;
using ::testing::HasSubstr;
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

TEST(CheckpointQueue, WritesWhileItsOwnerGoesOn) {
  const TempDir folder;
  const ParameterTable table = queue_table();
  std::promise<void> released;
  std::shared_future<void> release(released.get_future());
  WatchedFileSystem files([release](const std::string&, const auto&) { release.wait(); });
  CheckpointQueue queue(table, files);
  std::atomic<int> in_place = 0;
  fill(queue.copy(Kind::regular), 1);
  queue.write(Kind::regular, checkpoint_path(folder.path(), 1), [&] { ++in_place; });
  // That of the other kind is another copy, which nobody waits for either.
  fill(queue.copy(Kind::best), 2);
  queue.write(Kind::best, best_checkpoint_path(folder.path()));
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
  EXPECT_EQ(CheckpointFile(checkpoint_path(folder.path(), 1)).load(table).parameters[3], 1);
  EXPECT_EQ(CheckpointFile(best_checkpoint_path(folder.path())).load(table).parameters[3], 2);
}

TEST(CheckpointQueue, WaitsForTheOneBeforeOfTheSameKind) {
  const TempDir folder;
  const ParameterTable table = queue_table();
  CheckpointQueue queue(table, posix_file_system());
  for (std::int64_t step = 1; step <= 5; ++step) {
    fill(queue.copy(Kind::regular), step);
    queue.write(Kind::regular, checkpoint_path(folder.path(), step));
  }
  queue.wait();
  for (std::int64_t step = 1; step <= 5; ++step) {
    EXPECT_EQ(CheckpointFile(checkpoint_path(folder.path(), step)).load(table).parameters[0],
              static_cast<float>(step));
  }
}

TEST(CheckpointQueue, KeepsErrorsForItsOwnerAndGoesOn) {
  const TempDir folder;
  const ParameterTable table = queue_table();
  std::atomic<bool> full = true;
  WatchedFileSystem files([&](const std::string& name, const auto&) {
    if (full && name == "write") throw IoError("no space left on device");
  });
  CheckpointQueue queue(table, files);
  bool in_place = false;
  fill(queue.copy(Kind::regular), 1);
  queue.write(Kind::regular, checkpoint_path(folder.path(), 1), [&] { in_place = true; });
  queue.wait();
  auto results = queue.take_results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].error, "no space left on device");
  EXPECT_FALSE(in_place);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  full = false;
  fill(queue.copy(Kind::regular), 2);
  queue.write(Kind::regular, checkpoint_path(folder.path(), 2), [] { throw IoError("and then"); });
  queue.wait();
  results = queue.take_results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(results[0].error, HasSubstr("and then"));
  EXPECT_EQ(CheckpointFile(checkpoint_path(folder.path(), 2)).load(table).step, 2);
}

TEST(CheckpointQueue, FinishesWhatItWasGivenAndMakesTheFolder) {
  const TempDir folder;
  const ParameterTable table = queue_table();
  std::atomic<int> parts = 0;
  {
    CheckpointQueue queue(table, posix_file_system(), [&] { ++parts; });
    fill(queue.copy(Kind::regular), 7);
    queue.write(Kind::regular, checkpoint_path(folder / "gone/checkpoints", 7));
  }
  EXPECT_EQ(CheckpointFile(checkpoint_path(folder / "gone/checkpoints", 7)).load(table).step, 7);
  EXPECT_GE(parts, 1);
}

}  // namespace
}  // namespace tpudist
