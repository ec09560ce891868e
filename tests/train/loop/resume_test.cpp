// What happens to a run's folder: checkpoints that do not fit, damaged files, failures, and what is
// kept.

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/folder_lock.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/run_folder.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace fs = std::filesystem;

// Every file below a folder with its content.
std::map<std::string, std::string> content_of(const fs::path& folder) {
  std::map<std::string, std::string> content;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) content[entry.path().string()] = read_text_file(entry.path());
  }
  return content;
}

void cut_in_half(const fs::path& file) {
  fs::resize_file(file, fs::file_size(file) / 2);
}

using Resume = TrainTest;

TEST_F(Resume, RefusesAnotherNetworkAndLeavesTheRunAsItWas) {
  run(tiny_experiment({"train.log_every=1"}), folder / "run");
  const auto before = content_of(folder / "run");
  const std::string message = message_of<ConfigError>([&] {
    resume(tiny_experiment({"train.log_every=1", "model.encoder.width=48", "optimizer.lr=0.01"}),
           folder / "run");
  });
  EXPECT_THAT(message, HasSubstr("step-000000006.h5: was written with other settings: "));
  EXPECT_THAT(message, HasSubstr("model.encoder.width: 32 -> 48"));
  EXPECT_THAT(message, HasSubstr("optimizer.lr: 0.001 -> 0.01"));
  EXPECT_EQ(content_of(folder / "run"), before);
}

TEST_F(Resume, RefusesOtherData) {
  const Experiment experiment = tiny_experiment();
  run(experiment, folder / "run");
  change_checkpoint(list_checkpoints(folder / "run/checkpoints").front(), experiment,
                    [](Checkpoint& checkpoint, const auto&) { ++checkpoint.selection_hash; });
  EXPECT_THAT(message_of<ConfigError>([&] { resume(experiment, folder / "run"); }),
              HasSubstr("was trained on other data"));
}

// A program without some keys has another hash: what counts is that they have their defaults now.
TEST_F(Resume, TakesACheckpointWithoutKeysThatHaveTheirDefaults) {
  const Experiment experiment = tiny_experiment({"train.checkpoint_every=2"});
  const std::uint64_t whole = run(experiment, folder / "run").parameter_hash;
  fs::remove(checkpoint_path(folder / "run/checkpoints", 6));
  const fs::path file = checkpoint_path(folder / "run/checkpoints", 4);
  change_checkpoint(file, experiment, [](Checkpoint& checkpoint, const auto&) {
    checkpoint.config_hash = 1;
    const std::string key = "  last_evaluation: all\n", other = "  beta2: 0.999\n";
    for (const std::string& line : {key, other}) {
      const std::size_t at = checkpoint.config.find(line);
      ASSERT_NE(at, std::string::npos) << line;
      checkpoint.config.erase(at, line.size());
    }
  });
  EXPECT_EQ(resume(experiment, folder / "run").parameter_hash, whole);
  EXPECT_EQ(open_run(folder / "run", "4").step, 4);
}

TEST_F(Resume, SetsADamagedCheckpointAsideAndTakesTheOneBefore) {
  const Experiment experiment = tiny_experiment({"train.checkpoint_every=2"});
  const std::uint64_t whole = run(experiment, folder / "run").parameter_hash;
  const fs::path checkpoints = folder / "run/checkpoints";
  cut_in_half(checkpoint_path(checkpoints, 6));
  run(experiment, folder / "run", 1, true, stop_after(1));  // from 4 to 5
  EXPECT_THAT(list_checkpoints(checkpoints),
              ElementsAre(checkpoint_path(checkpoints, 5), checkpoint_path(checkpoints, 4)));
  EXPECT_TRUE(fs::exists(checkpoint_path(checkpoints, 6).string() + ".damaged"));
  EXPECT_EQ(resume(experiment, folder / "run").parameter_hash, whole);
}

TEST_F(Resume, StartsAnewWhereNoCheckpointIsWhole) {
  const Experiment experiment = tiny_experiment();
  const std::uint64_t whole = run(experiment, folder / "run").parameter_hash;
  const fs::path file = checkpoint_path(folder / "run/checkpoints", 6);
  cut_in_half(file);
  const auto other = tiny_experiment({"batch.configs=5"});
  EXPECT_THAT(message_of<ConfigError>([&] { resume(other, folder / "run"); }),
              HasSubstr("config.yaml: was written with other settings: batch.configs: 4 -> 5"));
  EXPECT_EQ(resume(experiment, folder / "run").parameter_hash, whole);
  EXPECT_TRUE(fs::exists(file.string() + ".damaged"));
}

using RunFolders = TrainTest;

TEST_F(RunFolders, WritesNothingBeforeTheDataAreThere) {
  for (const bool resumes : {false, true}) {
    EXPECT_ANY_THROW(run(tiny_experiment({"data.shards=" + (folder / "none").string()}),
                         folder / "run", 1, resumes));
    EXPECT_FALSE(fs::exists(folder / "run"));
  }
}

TEST_F(RunFolders, TakesOnlyAnEmptyFolderOrARun) {
  const Experiment experiment = tiny_experiment();
  std::ofstream(folder / "notes.txt") << "mine";
  for (const bool resumes : {false, true}) {
    EXPECT_THAT(message_of<ConfigError>([&] { run(experiment, folder.path(), 1, resumes); }),
                HasSubstr("neither empty nor the folder of a run: it holds notes.txt"));
    EXPECT_THAT(message_of<ConfigError>([&] { run(experiment, test::tiny_shards(), 1, resumes); }),
                HasSubstr("neither empty nor the folder of a run"));
    EXPECT_THAT(message_of<ConfigError>([&] { run(experiment, folder / "notes.txt", 1, resumes); }),
                HasSubstr("notes.txt: cannot be used as the folder of a run"));
  }
  fs::create_directories(folder / "new/checkpoints");  // a run that died as it began
  std::ofstream(folder / "new" / std::string(kLockName)) << "";
  std::ofstream(folder / "new/config.yaml.4711-0-0badc0de.tmp") << "name:";
  run(experiment, folder / "new");
  EXPECT_THAT(message_of<ConfigError>([&] { run(experiment, folder / "new"); }),
              HasSubstr("already holds a run; continue it with --resume"));
}

TEST_F(RunFolders, IsLeftToTheProcessThatTrainsIt) {
  const Experiment experiment = tiny_experiment();
  fs::create_directories(folder / "run");
  {
    const FolderLock other(folder / "run", "tpudist train");
    EXPECT_THAT(message_of<Error>([&] { run(experiment, folder / "run"); }),
                HasSubstr("run: is in use by tpudist train, process "));
  }
  run(experiment, folder / "run");
  const FolderLock other(folder / "run", "tpudist train");
  const auto before = content_of(folder / "run/checkpoints");
  EXPECT_THAT(message_of<Error>([&] { resume(experiment, folder / "run"); }),
              HasSubstr("run: is in use by tpudist train, process "));
  EXPECT_EQ(content_of(folder / "run/checkpoints"), before);
  EXPECT_EQ(open_run(folder / "run").step, 6);  // who only reads is not kept out
}

TEST_F(RunFolders, StopsWhenEveryMemberHasFailed) {
  const auto experiment = tiny_experiment(
      {"optimizer.lr=1e6", "optimizer.clip_norm=0", "train.steps=1000", "train.log_every=1"});
  const std::string message = message_of<Error>([&] { run(experiment, folder / "run"); });
  EXPECT_THAT(message, HasSubstr("no member is left at step "));
  EXPECT_THAT(message, HasSubstr("optimizer.lr"));
  EXPECT_THAT(list_checkpoints(folder / "run/checkpoints"), IsEmpty());
  EXPECT_THROW(open_run(folder / "run"), ConfigError);
}

TEST_F(RunFolders, NamesTheMembersThatFailed) {
  const Experiment experiment = tiny_experiment({"train.checkpoint_every=2"});
  run(experiment, folder / "run");
  fs::remove(checkpoint_path(folder / "run/checkpoints", 6));
  test::spoil_member(checkpoint_path(folder / "run/checkpoints", 4), experiment, 1);
  EXPECT_THAT(resume(experiment, folder / "run").failed, ElementsAre(1));
  EXPECT_THAT(resume(experiment, folder / "run").failed, ElementsAre(1));  // and it stays so
  EXPECT_THAT(open_run(folder / "run").use, ElementsAre(true, false, true));
}

// The step of the highest ensemble score in metrics.jsonl, the first of equal ones.
std::int64_t best_logged_step(const fs::path& folder) {
  std::ifstream file(RunFolder(folder).metrics());
  double best = -2;
  std::int64_t step = -1;
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record["kind"] != "evaluation" || record["ensemble"] <= best) continue;
    best = record["ensemble"];
    step = record["step"];
  }
  return step;
}

TEST_F(RunFolders, KeepsTheBestCheckpointBesideTheNewest) {
  const Experiment experiment =
      tiny_experiment({"train.evaluate_every=1", "train.steps=8", "train.checkpoint_every=3",
                       "optimizer.lr=0.05", "train.keep_checkpoints=1"});
  run(experiment, folder / "run", 1, false, stop_after(5));
  run(experiment, folder / "run", 1, true);
  const std::int64_t best = best_logged_step(folder / "run");
  EXPECT_EQ(open_run(folder / "run", "best").step, best);
  EXPECT_EQ(open_run(folder / "run").step, 8);
  EXPECT_THAT(list_checkpoints(folder / "run/checkpoints"),
              ElementsAre(checkpoint_path(folder / "run/checkpoints", 8)));
  cut_in_half(best_checkpoint_path(folder / "run/checkpoints"));
  EXPECT_THROW(open_run(folder / "run", "best"), DataError);
  resume(experiment, folder / "run");
  EXPECT_TRUE(fs::exists(folder / "run/checkpoints/best.h5.damaged"));
  EXPECT_EQ(open_run(folder / "run", "best").step, 8);  // of those that were scored since
}

using OpenRun = TrainTest;

TEST_F(OpenRun, SaysWhichCheckpointsThereAre) {
  run(tiny_experiment({"train.checkpoint_every=4", "train.last_evaluation=none"}), folder / "run");
  EXPECT_EQ(open_run(folder / "run", "4").step, 4);
  EXPECT_THAT(message_of<ConfigError>([&] { open_run(folder / "run", "5"); }),
              HasSubstr("step-000000005.h5: there is no such checkpoint; there are: 6, 4"));
  EXPECT_THAT(message_of<ConfigError>([&] { open_run(folder / "run", "best"); }),
              HasSubstr("best.h5: there is no such checkpoint (it is written when"));
  for (const char* odd : {"", "newest", "-1", "4x", "../4"}) {
    EXPECT_THAT(message_of<ConfigError>([&] { open_run(folder / "run", odd); }),
                HasSubstr("must be last, best or a step"));
  }
}

TEST_F(OpenRun, RefusesACheckpointOfOtherSettings) {
  run(tiny_experiment(), folder / "run");
  std::ofstream(folder / "run/config.yaml")
      << tiny_experiment({"model.readout.pool=mean"}).resolved_yaml;
  EXPECT_THAT(message_of<ConfigError>([&] { open_run(folder / "run"); }),
              HasSubstr("other settings: model.readout.pool: sum -> mean"));
}

TEST_F(OpenRun, MendsAConfigurationThatIsMissingOrDamaged) {
  const Experiment experiment = tiny_experiment();
  run(experiment, folder / "run");
  const fs::path config = folder / "run/config.yaml";
  fs::remove(config);
  EXPECT_EQ(open_run(folder / "run").step, 6);
  EXPECT_EQ(read_text_file(config), experiment.resolved_yaml);
  std::ofstream(config) << "name: [";
  EXPECT_EQ(open_run(folder / "run").experiment.numbers_hash, experiment.numbers_hash);
  EXPECT_EQ(read_text_file(config), experiment.resolved_yaml);
  EXPECT_EQ(read_text_file(config.string() + ".damaged"), "name: [");
}

TEST_F(OpenRun, OnlyReadsDamagedCheckpoints) {
  run(tiny_experiment({"train.checkpoint_every=4"}), folder / "run");
  const fs::path newest = checkpoint_path(folder / "run/checkpoints", 6);
  cut_in_half(newest);
  EXPECT_EQ(open_run(folder / "run").step, 4);
  EXPECT_TRUE(fs::exists(newest));
  EXPECT_THROW(open_run(folder / "run", "6"), DataError);
}

}  // namespace
}  // namespace tpudist::test
