#include "results/checkpoints/checkpoint.hpp"

#include <hdf5.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <stdexcept>

#include "core/error.hpp"
#include "data/hdf5/hdf5_dataset.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/checkpoints/checkpoint_queue.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/watched_files.hpp"

namespace tpudist::test {
namespace {

ParameterTable make_table() {
  ParameterTable table;
  table.add("encoder.weight", {3, 5});
  table.add("encoder.bias", {5});
  table.add("output.weight", {5, 1}, ParameterGroup::output);
  return table;
}

// Values that tell every place from every other, padding zero.
std::vector<float> make_flat(const ParameterTable& table, int members, float first) {
  std::vector<float> flat(static_cast<std::size_t>(members * table.length()));
  for (int member = 0; member < members; ++member) {
    for (const ParameterEntry& entry : table.entries()) {
      for (std::int64_t i = 0; i < entry.size(); ++i) {
        flat[member * table.length() + entry.offset + i] = first++;
      }
    }
  }
  return flat;
}

Checkpoint make_checkpoint(const ParameterTable& table, std::int64_t step = 123) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.config_hash = 0xfedcba9876543210;
  checkpoint.selection_hash = 7;
  checkpoint.config = "name: tiny\nbatch: {slates: 4}\n";
  checkpoint.members = 2;
  checkpoint.parameters = make_flat(table, 2, 0.5f);
  checkpoint.first_moment = make_flat(table, 2, -100);
  checkpoint.second_moment = make_flat(table, 2, 1e-30f);
  checkpoint.optimizer_steps = {123, std::int64_t{1} << 40};
  checkpoint.best_score = {std::numeric_limits<double>::quiet_NaN(), 0.1};
  checkpoint.best_step = {0, 100};
  checkpoint.failed = {1, 0};
  checkpoint.losses.assign(60, 0.25);
  checkpoint.init_hash = 9;
  checkpoint.numbers = {{"train_seconds", 1.0 / 3}, {"wait.seconds", 1e-300}};
  return checkpoint;
}

std::string refusal(const std::filesystem::path& path, const ParameterTable& table) {
  return message_of<DataError>([&] { CheckpointFile(path).load(table); });
}

class CheckpointTest : public FolderTest {
 protected:
  const ParameterTable table_ = make_table();
};

TEST_F(CheckpointTest, ComesBackAsItWas) {
  const Checkpoint saved = make_checkpoint(table_);
  save_checkpoint(folder_ / "a.h5", saved, table_);
  const Checkpoint loaded = CheckpointFile(folder_ / "a.h5").load(table_);
  EXPECT_EQ(loaded.step, saved.step);
  EXPECT_EQ(loaded.config_hash, saved.config_hash);
  EXPECT_EQ(loaded.selection_hash, saved.selection_hash);
  EXPECT_EQ(loaded.config, saved.config);
  EXPECT_EQ(loaded.members, saved.members);
  EXPECT_EQ(loaded.parameters, saved.parameters);
  EXPECT_EQ(loaded.first_moment, saved.first_moment);
  EXPECT_EQ(loaded.second_moment, saved.second_moment);
  EXPECT_EQ(loaded.optimizer_steps, saved.optimizer_steps);
  EXPECT_TRUE(std::isnan(loaded.best_score[0]));
  EXPECT_EQ(loaded.best_score[1], saved.best_score[1]);
  EXPECT_EQ(loaded.best_step, saved.best_step);
  EXPECT_EQ(loaded.failed, saved.failed);
  EXPECT_EQ(loaded.numbers, saved.numbers);
  EXPECT_EQ(loaded.losses, saved.losses);
  EXPECT_EQ(loaded.init_hash, saved.init_hash);
}

TEST_F(CheckpointTest, HoldsAveragesWhereThereAreAny) {
  Checkpoint saved = make_checkpoint(table_);
  save_checkpoint(folder_ / "none.h5", saved, table_);
  EXPECT_TRUE(CheckpointFile(folder_ / "none.h5").load(table_).average.empty());
  EXPECT_TRUE(CheckpointFile(folder_ / "none.h5").load(table_).average_points.empty());
  saved.average = make_flat(table_, 2, 1000);
  saved.average_points = {0, 17};
  save_checkpoint(folder_ / "some.h5", saved, table_);
  EXPECT_EQ(CheckpointFile(folder_ / "some.h5").load(table_).average, saved.average);
  EXPECT_EQ(CheckpointFile(folder_ / "some.h5").load(table_).average_points, saved.average_points);
  EXPECT_EQ(CheckpointFile(folder_ / "some.h5").load(table_).parameters, saved.parameters);
  saved.average.pop_back();
  EXPECT_THROW(save_checkpoint(folder_ / "odd.h5", saved, table_), Error);
}

TEST_F(CheckpointTest, HoldsParametersUnderTheirNamesWithTheMemberAxisFirst) {
  save_checkpoint(folder_ / "a.h5", make_checkpoint(table_), table_);
  const Hdf5Id file = open_hdf5(folder_ / "a.h5");
  const Hdf5Id parameters = open_group(file, "parameters", "a.h5");
  const Hdf5Lock lock;
  const Hdf5Id dataset(H5Dopen2(parameters.get(), "encoder.bias", H5P_DEFAULT), H5Dclose);
  const Hdf5Id space(H5Dget_space(dataset.get()), H5Sclose);
  hsize_t shape[2] = {};
  ASSERT_EQ(H5Sget_simple_extent_dims(space.get(), shape, nullptr), 2);
  EXPECT_THAT(shape, ElementsAre(2, 5));
  float values[10];
  ASSERT_GE(H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
  // After the 15 weights of the first member; 25 values are a member's.
  EXPECT_THAT(values, ElementsAre(15.5, 16.5, 17.5, 18.5, 19.5, 40.5, 41.5, 42.5, 43.5, 44.5));
}

TEST_F(CheckpointTest, RefusesAnyFlippedByte) {
  save_checkpoint(folder_ / "a.h5", make_checkpoint(table_), table_);
  const std::string whole = read_text_file(folder_ / "a.h5");
  for (std::size_t at = 0; at < whole.size(); at += 1 + at / 16) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    overwrite(folder_ / "b.h5", damaged);
    EXPECT_THAT(refusal(folder_ / "b.h5", table_), HasSubstr("b.h5: damaged")) << "byte " << at;
  }
}

// TPUDIST_DAMAGES says how many.
TEST_F(CheckpointTest, RefusesEverySeededDamage) {
  const auto path = folder_ / "a.h5";
  save_checkpoint(path, make_checkpoint(table_), table_);
  const std::string whole = read_text_file(path);
  for (int seed = 0; seed < damage_count(200); ++seed) {
    overwrite(path, damaged(whole, static_cast<std::uint64_t>(seed)));
    EXPECT_EQ(fault_of_message(refusal(path, table_), path), "") << seed;
  }
}

TEST_F(CheckpointTest, RefusesATruncatedFile) {
  save_checkpoint(folder_ / "a.h5", make_checkpoint(table_), table_);
  const std::string whole = read_text_file(folder_ / "a.h5");
  for (std::size_t bytes :
       {std::size_t{0}, std::size_t{100}, std::size_t{512}, whole.size() / 2, whole.size() - 1}) {
    overwrite(folder_ / "b.h5", whole.substr(0, bytes));
    EXPECT_THAT(refusal(folder_ / "b.h5", table_), HasSubstr("cut short")) << bytes << " bytes";
  }
  EXPECT_THROW(CheckpointFile(folder_ / "none.h5").load(table_), IoError);
}

TEST_F(CheckpointTest, NamesTheFirstParameterThatDiffers) {
  save_checkpoint(folder_ / "a.h5", make_checkpoint(table_), table_);
  ParameterTable wider, more, other;
  wider.add("encoder.weight", {3, 5});
  wider.add("encoder.bias", {6});
  wider.add("output.weight", {5, 1}, ParameterGroup::output);
  more.add("encoder.weight", {3, 5});
  more.add("encoder.bias", {5});
  more.add("output.weight", {5, 1}, ParameterGroup::output);
  more.add("output.bias", {1}, ParameterGroup::output);
  other.add("encoder.weight", {3, 5});
  other.add("encoder.bias", {5});
  EXPECT_THAT(refusal(folder_ / "a.h5", wider),
              HasSubstr("encoder.bias: is f32 [2, 5], not f32 [2, 6]"));
  EXPECT_THAT(refusal(folder_ / "a.h5", more), HasSubstr("no output.bias"));
  EXPECT_THAT(refusal(folder_ / "a.h5", other), HasSubstr("no parameter output.weight"));
}

TEST_F(CheckpointTest, RefusesSizesThatDoNotFitBeforeWriting) {
  Checkpoint checkpoint = make_checkpoint(table_);
  checkpoint.failed.pop_back();
  EXPECT_THROW(save_checkpoint(folder_ / "a.h5", checkpoint, table_), Error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.h5"));
}

TEST(Checkpoint, AFailureAnywhereLeavesAReadableCheckpoint) {
  const ParameterTable table = make_table();
  int failures = 0;
  for (int operation = 0;; ++operation) {
    const TempDir folder;
    save_checkpoint(folder / "a.h5", make_checkpoint(table, 1), table);
    bool failed = false;
    WatchedFileSystem files([&, next = 0](const std::string& name, const auto&) mutable {
      if (name == "remove" || next++ != operation) return;
      failed = true;
      throw IoError("no space left on device");
    });
    try {
      save_checkpoint(folder / "a.h5", make_checkpoint(table, 2), table, files);
    } catch (const IoError&) {
    }
    const std::int64_t step = CheckpointFile(folder / "a.h5").load(table).step;
    EXPECT_THAT(list_checkpoints(folder.path()), ElementsAre());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
    if (!failed) {
      EXPECT_EQ(step, 2);
      break;
    }
    ++failures;
    EXPECT_TRUE(step == 1 || step == 2) << step;
  }
  EXPECT_GE(failures, 6);  // create, write, sync, close, rename, sync of the folder
}

TEST(CheckpointFolder, ListsNewestFirstAndPrunes) {
  const TempDir folder;
  EXPECT_THAT(list_checkpoints(folder / "none"), ElementsAre());
  EXPECT_EQ(checkpoint_path("x", 123), "x/step-000000123.h5");
  for (std::int64_t step : {20, 3, 100}) overwrite(checkpoint_path(folder.path(), step), "x");
  for (const char* name : {"step-.h5", "step-1x.h5", "step-000000005.h5.12-0-ab.tmp", "notes"}) {
    overwrite(folder / name, "x");
  }
  EXPECT_THAT(list_checkpoints(folder.path()),
              ElementsAre(checkpoint_path(folder.path(), 100), checkpoint_path(folder.path(), 20),
                          checkpoint_path(folder.path(), 3)));
  prune_checkpoints(folder.path(), 2, 100);
  EXPECT_THAT(list_checkpoints(folder.path()),
              ElementsAre(checkpoint_path(folder.path(), 100), checkpoint_path(folder.path(), 20)));
  EXPECT_FALSE(std::filesystem::exists(folder / "step-000000005.h5.12-0-ab.tmp"));
  EXPECT_TRUE(std::filesystem::exists(folder / "notes"));
}

TEST(ParameterHash, SeesValuesNamesAndMembersButNotOrderOrPadding) {
  const ParameterTable table = make_table();
  const std::vector<float> flat = make_flat(table, 2, 1);
  const std::uint64_t hash = parameter_hash(flat, 2, table);
  std::vector<float> changed = flat;
  changed[static_cast<std::size_t>(table.length())] += 1;
  EXPECT_NE(parameter_hash(changed, 2, table), hash);
  EXPECT_NE(parameter_hash(flat, 1, table), hash);
  changed = flat;
  changed[15] = 9;  // after the 15 weights
  EXPECT_EQ(parameter_hash(changed, 2, table), hash);

  ParameterTable reversed, renamed;
  reversed.add("b", {2});
  reversed.add("a", {16});
  renamed.add("a", {16});
  renamed.add("b", {2});
  std::vector<float> b_first(32), a_first(32);
  for (int i = 0; i < 16; ++i) b_first[16 + i] = a_first[i] = static_cast<float>(i);
  b_first[0] = a_first[16] = 5;
  EXPECT_EQ(parameter_hash(b_first, 1, reversed), parameter_hash(a_first, 1, renamed));
}

// As earlier versions wrote it.
TEST_F(CheckpointTest, IsRefusedByWhatItLacks) {
  const auto path = folder_ / "step-000000123.h5";
  const auto without = [&](const std::function<void(hid_t)>& remove) {
    save_checkpoint(path, make_checkpoint(table_), table_);
    {
      const Hdf5Lock lock;
      const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
      remove(file.get());
    }
    seal_file(path);
    return refusal(path, table_);
  };
  EXPECT_THAT(without([](hid_t file) { H5Adelete(file, "changed_keys"); }),
              AllOf(HasSubstr(path.string()), HasSubstr("changed_keys")));
  EXPECT_THAT(without([](hid_t file) { H5Ldelete(file, "members/losses", H5P_DEFAULT); }),
              AllOf(HasSubstr(path.string()), HasSubstr("members/losses")));
}

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

class CheckpointQueueTest : public FolderTest {
 protected:
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
