// Checkpoints that are written while training goes on, and what may happen to them meanwhile.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "core/error.hpp"
#include "core/log.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/run_folder.hpp"
#include "tests/support/watched_files.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr int kDied = 77;  // exit code

Experiment faulty_experiment() {
  return tiny_experiment({"train.checkpoint_every=2", "train.evaluate_every=3",
                          "train.evaluate_rows=4", "train.last_evaluation=sampled",
                          "train.log_every=1"});
}

// Trains in a process of its own, which ends at the operation of this number as if it were killed,
// and returns its exit code.
int exit_code_of_run(const fs::path& folder, int dies_at) {
  const Experiment short_run = faulty_experiment();
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> operations = 0;
    WatchedFileSystem files([&](const std::string&, const auto&) {
      if (operations++ == dies_at) _exit(kDied);
    });
    int code = 1;
    try {
      run(
          short_run, folder, 1, false, [] { return false; }, files);
      code = 0;
    } catch (const std::exception&) {
    }
    _exit(code);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> temporary_files(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".tmp") names.push_back(entry.path().filename().string());
  }
  return names;
}

using CheckpointFaults = TrainTest;

// Processes are made before this one has any thread.
TEST_F(CheckpointFaults, DeathAtAnyWriteCallCostsNoMoreThanTheLastCheckpoint) {
  int deaths = 0;
  for (;; ++deaths) {
    ASSERT_LT(deaths, 200);
    const int code = exit_code_of_run(folder / std::to_string(deaths), deaths);
    if (code == 0) break;
    ASSERT_EQ(code, kDied) << "operation " << deaths;
  }
  EXPECT_GE(deaths, 3 * 7);  // create, two writes, sync, close, rename, sync of the folder of each
  const std::uint64_t whole = run(faulty_experiment(), folder / "whole").parameter_hash;
  for (int number = 0; number < deaths; ++number) {
    const fs::path died = folder / std::to_string(number);
    EXPECT_EQ(test::resume(faulty_experiment(), died).parameter_hash, whole)
        << "operation " << number;
    EXPECT_TRUE(temporary_files(died).empty()) << "operation " << number;
    EXPECT_TRUE(open_if_whole(checkpoint_path(died / "checkpoints", 6))) << "operation " << number;
    EXPECT_TRUE(open_if_whole(best_checkpoint_path(died / "checkpoints")))
        << "operation " << number;
  }
}

TEST_F(CheckpointFaults, TrainingDoesNotWaitForTheDisk) {
  std::mutex mutex;
  std::condition_variable changed;
  int boundaries = 0;
  bool in_time = true;
  // The first file waits until training has got to the next step.
  WatchedFileSystem files([&](const std::string& name, const auto&) {
    if (name != "create") return;
    std::unique_lock lock(mutex);
    in_time &= changed.wait_for(lock, std::chrono::seconds(60), [&] { return boundaries >= 4; });
  });
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    ++boundaries;  // after the checkpoint of step 2, boundary 3 is that of step 3
    changed.notify_all();
    return false;
  };
  run(tiny_experiment({"train.checkpoint_every=2"}), folder / "run", 1, false, count, files);
  EXPECT_TRUE(in_time);
  EXPECT_TRUE(open_if_whole(checkpoint_path(folder / "run/checkpoints", 6)));
}

TEST_F(CheckpointFaults, AFullDiskDoesNotEndTrainingBeforeTheLastAttempt) {
  const std::uint64_t whole = run(faulty_experiment(), folder / "whole").parameter_hash;
  std::atomic<bool> full = true;
  WatchedFileSystem files([&](const std::string& name, const auto&) {
    if (full && name == "write") throw IoError("no space left on device");
  });
  int boundaries = 0;
  ::testing::internal::CaptureStderr();
  const TrainOutcome outcome = run(
      faulty_experiment(), folder / "run", 1, false,
      [&] {
        if (++boundaries == 5) full = false;
        return false;
      },
      files);
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(outcome.parameter_hash, whole);
  EXPECT_TRUE(open_if_whole(checkpoint_path(folder / "run/checkpoints", 6)));
  EXPECT_FALSE(fs::exists(checkpoint_path(folder / "run/checkpoints", 2)));
  EXPECT_TRUE(temporary_files(folder / "run").empty());
}

TEST_F(CheckpointFaults, ALastCheckpointThatCannotBeWrittenFailsTheRun) {
  const std::uint64_t whole = run(faulty_experiment(), folder / "whole").parameter_hash;
  std::atomic<bool> full = false;
  WatchedFileSystem files([&](const std::string& name, const auto&) {
    if (full && name == "sync") throw IoError("no space left on device");
  });
  int boundaries = 0;
  const auto fill_disk = [&] {
    full = ++boundaries >= 6;
    return false;
  };
  try {
    run(faulty_experiment(), folder / "run", 1, false, fill_disk, files);
    ADD_FAILURE() << "no error";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("no space left on device; this was the last attempt of the run"),
                      HasSubstr("go on with --resume")));
  }
  EXPECT_EQ(test::resume(faulty_experiment(), folder / "run").parameter_hash, whole);
}

TEST_F(CheckpointFaults, AFolderThatVanishesIsMadeAgain) {
  const std::uint64_t whole = run(faulty_experiment(), folder / "whole").parameter_hash;
  int boundaries = 0;
  const auto remove_folder = [&] {
    if (++boundaries == 4) fs::remove_all(folder / "run/checkpoints");
    return false;
  };
  const TrainOutcome outcome = run(faulty_experiment(), folder / "run", 1, false, remove_folder);
  EXPECT_EQ(outcome.parameter_hash, whole);
  EXPECT_TRUE(open_if_whole(checkpoint_path(folder / "run/checkpoints", 6)));
}

TEST_F(CheckpointFaults, MetricsThatAFullDiskDoesNotTakeComeLater) {
  run(faulty_experiment(), folder / "whole");
  const RunFolder files(folder / "run");
  int boundaries = 0;
  const auto fill_disk = [&] {
    ++boundaries;
    if (boundaries == 1) {
      fs::rename(files.metrics(), folder / "written");
      fs::create_symlink("/dev/full", files.metrics());
    }
    if (boundaries == 4) fs::rename(folder / "written", files.metrics());
    return false;
  };
  run(faulty_experiment(), files.path(), 1, false, fill_disk);
  const auto lines = [](const RunFolder& of) {
    const std::string text = read_text_file(of.metrics());
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(files), lines(RunFolder(folder / "whole")));
  EXPECT_EQ(lines(files), 1 + 6 + 2);  // the start, steps and evaluations
}

// A folder in its place, say; the run ends later by a stop request, which loses nothing but lines.
TEST_F(CheckpointFaults, MetricsThatCannotBeWrittenAreNoReasonToStop) {
  const RunFolder files(folder / "run");
  int boundaries = 0;
  const auto break_metrics = [&] {
    if (++boundaries == 1) {
      fs::remove(files.metrics());
      fs::create_directory(files.metrics());
    }
    return boundaries == 5;
  };
  ::testing::internal::CaptureStderr();
  set_up_logging(0, 1);
  const TrainOutcome outcome = run(faulty_experiment(), files.path(), 1, false, break_metrics);
  EXPECT_TRUE(outcome.stopped);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("metrics.jsonl: Is a directory; training goes on"),
                    HasSubstr("; the log lacks ")));
  EXPECT_TRUE(open_if_whole(checkpoint_path(files.checkpoints(), 4)));
}

TEST_F(CheckpointFaults, AFolderThatIsRenamedIsFollowed) {
  const Experiment experiment = tiny_experiment(
      {"train.log_every=1", "train.evaluate_rows=4", "train.last_evaluation=sampled"});
  const std::uint64_t whole = run(experiment, folder / "whole").parameter_hash;
  int boundaries = 0;
  const auto rename = [&] {
    if (++boundaries == 4) fs::rename(folder / "run", folder / "moved");
    return false;
  };
  const TrainOutcome outcome = run(experiment, folder / "run", 1, false, rename);
  EXPECT_EQ(outcome.parameter_hash, whole);
  EXPECT_EQ(outcome.folder.filename(), "moved");
  const RunFolder files(folder / "moved");
  EXPECT_TRUE(open_if_whole(checkpoint_path(files.checkpoints(), 6)));
  EXPECT_EQ(read_text_file(files.scores()), read_text_file(RunFolder(folder / "whole").scores()));
  const std::string lines = read_text_file(files.metrics());
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1 + 6 + 1);
  EXPECT_FALSE(fs::exists(folder / "run"));
  EXPECT_FALSE(fs::exists(folder / "moved" / kLockName));
}

TEST_F(CheckpointFaults, MetricsThatNeverFitAreLostWithoutHarm) {
  const RunFolder files(folder / "run");
  int boundaries = 0;
  const auto fill_disk = [&] {
    if (++boundaries > 1) return false;
    fs::remove(files.metrics());
    fs::create_symlink("/dev/full", files.metrics());
    return false;
  };
  EXPECT_EQ(run(faulty_experiment(), files.path(), 1, false, fill_disk).steps, 6);
  EXPECT_TRUE(open_if_whole(checkpoint_path(files.checkpoints(), 6)));
}

}  // namespace
}  // namespace tpudist::test
