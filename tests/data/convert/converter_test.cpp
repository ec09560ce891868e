#include "data/convert/converter.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "core/error.hpp"
#include "core/folder_lock.hpp"
#include "data/convert/verifier.hpp"
#include "data/shards/shard_reader.hpp"
#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

const std::string kTrain = "layout/xla/random/train/",
                  kManifest = "layout/xla/random/manifest.json";

class ConverterTest : public ::testing::Test {
 protected:
  ConverterTest() { options_.npz_root = npz_, options_.shard_root = shards_, options_.jobs = 2; }

  void add(const std::string& file, NpzFixture fixture = NpzFixture::layout()) {
    fixture.write(npz_ / file);
  }

  std::vector<ConvertedCollection> run() {
    NoProgress progress;
    return convert(options_, progress);
  }

  std::vector<std::string> problems() {
    NoProgress progress;
    std::vector<std::string> all;
    for (const auto& done : verify({shards_, npz_, 2}, progress)) {
      all.insert(all.end(), done.problems.begin(), done.problems.end());
    }
    return all;
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    if (!fs::exists(shards_)) return names;
    for (const auto& entry : fs::recursive_directory_iterator(shards_)) {
      if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(shards_));
    }
    std::ranges::sort(names);
    return names;
  }

  TempDir folder_;
  const fs::path npz_ = folder_ / "npz", shards_ = folder_ / "shards";
  ConvertOptions options_;
};

TEST_F(ConverterTest, ConvertsWhatIsThere) {
  add(kTrain + "b.npz");
  add(kTrain + "a.npz");
  add("layout/xla/random/valid/c.npz");
  NpzFixture test = NpzFixture::layout();
  test.runtime.assign(6, 0);
  add("layout/xla/random/test/d.npz", test);
  for (int i = 0; i < 70; ++i) {
    add("tile/xla/train/k" + std::to_string(i) + ".npz", NpzFixture::make_tile());
  }
  const auto done = run();
  ASSERT_THAT(done, SizeIs(2));
  EXPECT_EQ(done[0].graphs, 70);
  EXPECT_EQ(done[1].graphs, 4);
  EXPECT_TRUE(done[0].published && done[1].published);
  EXPECT_THAT(files(),
              ElementsAre(kManifest, "layout/xla/random/test/shard-00000.h5",
                          kTrain + "shard-00000.h5", kTrain + "shard-00001.h5",
                          "layout/xla/random/valid/shard-00000.h5", "tile/xla/manifest.json",
                          "tile/xla/train/shard-00000.h5", "tile/xla/train/shard-00001.h5"));
  EXPECT_THAT(problems(), IsEmpty());

  const auto graphs = list_graphs(shards_, kLayout);
  ASSERT_THAT(graphs, SizeIs(4));
  EXPECT_EQ(graphs[0].name, "a");
  EXPECT_EQ(graphs[1].name, "b");
  EXPECT_EQ(graphs[2].split, "valid");
  EXPECT_EQ(graphs[3].split, "test");
  EXPECT_EQ(graphs[0].source.path, "layout/xla/random/train/a.npz");
  EXPECT_EQ(graphs[0].configs, 6);
  EXPECT_EQ(GraphReader(graphs[0]).read_graph().name, "a");
  EXPECT_THAT(list_graphs(shards_, kTile, "train"), SizeIs(70));
  EXPECT_THAT(list_graphs(shards_, kLayout, "valid"), SizeIs(1));
  EXPECT_THROW(list_graphs(shards_, {"layout:nlp:random"}), DataError);
}

TEST_F(ConverterTest, KeepsFinishedShardsAndRedoesChangedOnes) {
  add(kTrain + "a.npz");
  add(kTrain + "b.npz");
  run();
  const auto before = fs::last_write_time(shards_ / "layout/xla/random/train/shard-00000.h5");
  auto done = run();
  EXPECT_EQ(done[0].converted, 0);
  EXPECT_EQ(done[0].kept, 2);
  EXPECT_EQ(fs::last_write_time(shards_ / "layout/xla/random/train/shard-00000.h5"), before);

  NpzFixture changed = NpzFixture::layout();
  changed.runtime[0] = 77;
  add(kTrain + "b.npz", changed);
  done = run();
  EXPECT_EQ(done[0].converted, 1);
  EXPECT_EQ(done[0].kept, 1);
  EXPECT_EQ(GraphReader(list_graphs(shards_, kLayout)[1]).read_run_times().runtime[0], 77);

  fs::remove(npz_ / "layout/xla/random/train/a.npz");  // b becomes the first shard
  options_.replace = true;
  done = run();
  EXPECT_EQ(done[0].graphs, 1);
  EXPECT_THAT(files(), ElementsAre(kManifest, kTrain + "shard-00000b.h5"));
  EXPECT_THAT(problems(), IsEmpty());
  add(kTrain + "b.npz");
  run();  // the first name is free again
  EXPECT_THAT(files(), ElementsAre(kManifest, kTrain + "shard-00000.h5"));
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(ConverterTest, RefusesFoldersThatLieWithinEachOther) {
  add(kTrain + "a.npz");
  fs::create_directory_symlink(npz_, folder_ / "link");
  fs::create_directories(shards_ / "layout/xla");
  for (const fs::path& target : {npz_, npz_ / "", npz_ / "shards", npz_ / "../npz", folder_.path(),
                                 folder_ / "link", folder_ / "link/x"}) {
    options_.shard_root = target;
    EXPECT_THROW(run(), ConfigError) << target;
  }
  options_.shard_root = shards_;  // a part of which is a link into the sources
  fs::create_directory_symlink(npz_ / "layout/xla/random", shards_ / "layout/xla/random");
  EXPECT_THROW(run(), ConfigError);
  EXPECT_EQ(read_text_file(npz_ / "layout/xla/random/train/a.npz").substr(0, 2), "PK");
}

TEST_F(ConverterTest, RefusesAFolderWithOtherData) {
  add(kTrain + "a.npz");
  run();
  const auto before = read_text_file(shards_ / "layout/xla/random/train/shard-00000.h5");
  fs::remove_all(npz_);
  add(kTrain + "other.npz");
  EXPECT_THROW(run(), ConfigError);
  fs::remove(shards_ / "layout/xla/random/manifest.json");  // of a conversion cut short
  EXPECT_THROW(run(), ConfigError);
  EXPECT_TRUE(read_text_file(shards_ / "layout/xla/random/train/shard-00000.h5") == before);
  options_.replace = true;
  EXPECT_EQ(run()[0].converted, 1);
  NpzFixture::layout().write(shards_ / "layout/xla/random/train/x.npz");
  EXPECT_THROW(run(), ConfigError);
}

TEST_F(ConverterTest, LetsNoGraphGoThatWasNotNamed) {
  add(kTrain + "a.npz");
  add(kTrain + "b.npz");
  run();
  const auto before = files();
  fs::remove(npz_ / "layout/xla/random/train/b.npz");
  EXPECT_THAT(message_of<ConfigError>([&] { run(); }),
              HasSubstr("1 of 2 sources, such as layout/xla/random/train/b.npz, are not in"));
  EXPECT_THAT(files(), before);
  std::ofstream(shards_ / "layout/xla/random/train/shard-00000 (copy).h5") << "mine";
  std::ofstream(shards_ / "layout/xla/random/shard-00000.h5") << "mine";
  options_.replace = true;
  EXPECT_EQ(run()[0].graphs, 1);
  EXPECT_THAT(files(), ElementsAre(kManifest, "layout/xla/random/shard-00000.h5",
                                   kTrain + "shard-00000 (copy).h5", kTrain + "shard-00000.h5"));
}

TEST_F(ConverterTest, GoesOnWithAnInterruptedConversionOfWhichSomeSourcesAreGone) {
  add(kTrain + "a.npz");
  add(kTrain + "b.npz");
  run();
  fs::remove(shards_ / "layout/xla/random/manifest.json");
  fs::remove(npz_ / "layout/xla/random/train/b.npz");
  const auto done = run().at(0);
  EXPECT_EQ(done.kept, 1);
  EXPECT_EQ(done.graphs, 1);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(ConverterTest, RedoesDamagedShards) {
  add(kTrain + "a.npz");
  run();
  fs::path shard = shards_ / "layout/xla/random/train/shard-00000.h5";
  const std::string good = read_text_file(shard);
  std::string bad = good;
  bad[bad.size() / 2] ^= 0x10;
  std::ofstream(shard, std::ios::binary) << bad;
  EXPECT_THAT(problems(), SizeIs(1));
  EXPECT_EQ(run()[0].converted, 1);
  shard = list_graphs(shards_, kLayout).at(0).shard;
  EXPECT_TRUE(read_text_file(shard) == good);  // the same bytes again
  std::ofstream(shard, std::ios::binary) << good.substr(0, good.size() / 2);
  EXPECT_THROW(list_graphs(shards_, kLayout), DataError);
  EXPECT_EQ(run()[0].converted, 1);
  fs::remove(shards_ / "layout/xla/random/manifest.json");
  EXPECT_EQ(run()[0].kept, 1);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(ConverterTest, NamesEveryBadFileAndPublishesNothing) {
  add(kTrain + "good.npz");
  NpzFixture bad = NpzFixture::layout();
  bad.config_ids[1] = 400;
  add(kTrain + "bad1.npz", bad);
  std::ofstream(npz_ / "layout/xla/random/train/bad2.npz") << "no zip";
  const auto done = run();
  EXPECT_FALSE(done[0].published);
  ASSERT_THAT(done[0].bad, SizeIs(2));
  EXPECT_EQ(done[0].bad[0].source, "layout/xla/random/train/bad1.npz");
  EXPECT_THAT(done[0].bad[0].error, HasSubstr("bad1.npz: node_config_ids[1] = 400 is not a node"));
  EXPECT_THAT(done[0].bad[1].error, HasSubstr("bad2.npz: not a sound zip file"));
  EXPECT_THAT(files(), ElementsAre(kTrain + "shard-00002.h5"));
  EXPECT_THROW(list_graphs(shards_, kLayout), DataError);
}

TEST_F(ConverterTest, AFileThatTurnsBadLeavesWhatWasConverted) {
  add(kTrain + "a.npz");
  add(kTrain + "b.npz");
  run();
  const auto before = read_text_file(shards_ / "layout/xla/random/manifest.json");
  NpzFixture bad = NpzFixture::layout(), other = NpzFixture::layout();
  bad.runtime[0] = 0;
  other.runtime[0] = 77;
  add(kTrain + "a.npz", bad);
  add(kTrain + "b.npz", other);
  for (const bool skip : {false, true}) {  // --on-error skip lets no converted graph go
    options_.skip_bad = skip;
    EXPECT_FALSE(run()[0].published);
    EXPECT_EQ(read_text_file(shards_ / "layout/xla/random/manifest.json"), before);
    EXPECT_EQ(GraphReader(list_graphs(shards_, kLayout).at(1)).read_run_times().runtime[0], 100);
  }
  add(kTrain + "a.npz");
  const auto done = run().at(0);  // the new shard of b waited for it
  EXPECT_EQ(done.kept, 2);
  EXPECT_EQ(GraphReader(list_graphs(shards_, kLayout).at(1)).read_run_times().runtime[0], 77);
  EXPECT_THAT(problems(), IsEmpty());
  add(kTrain + "a.npz", bad);
  options_.replace = true;
  EXPECT_EQ(run().at(0).graphs, 1);
}

TEST_F(ConverterTest, RemovesWhatKilledRunsLeft) {
  add(kTrain + "a.npz");
  fs::create_directories(shards_ / "layout/xla/random/train");
  std::ofstream(shards_ / "layout/xla/random/manifest.json.17-0-0badcafe.tmp") << "half";
  std::ofstream(shards_ / "layout/xla/random/train/shard-00007.h5.17-0-0badcafe.tmp") << "half";
  run();
  EXPECT_THAT(files(), ElementsAre(kManifest, kTrain + "shard-00000.h5"));
}

TEST_F(ConverterTest, SkipsBadFilesWhenAsked) {
  NpzFixture bad = NpzFixture::make_tile();
  bad.features[30] = NAN;
  add("tile/xla/train/a.npz", NpzFixture::make_tile());
  add("tile/xla/train/b.npz", bad);
  add("tile/xla/train/c.npz", NpzFixture::make_tile());
  EXPECT_FALSE(run()[0].published);
  EXPECT_THAT(files(), IsEmpty());
  options_.skip_bad = true;
  const auto done = run();
  EXPECT_TRUE(done[0].published);
  EXPECT_EQ(done[0].graphs, 2);
  ASSERT_THAT(done[0].bad, SizeIs(1));
  EXPECT_THAT(problems(), IsEmpty());
  const Manifest manifest = read_manifest(shards_ / "tile/xla/manifest.json", kTile);
  ASSERT_THAT(manifest.skipped, SizeIs(1));
  EXPECT_EQ(manifest.skipped[0].source, "tile/xla/train/b.npz");
}

TEST_F(ConverterTest, SaysWhenThereIsNothingToConvert) {
  fs::create_directories(npz_);
  EXPECT_THROW(run(), ConfigError);
  add(kTrain + "a.npz");
  options_.collections = {kTile};
  EXPECT_THROW(run(), ConfigError);
}

TEST_F(ConverterTest, RefusesLinksToNothingAndNamesThatNoTableCanHold) {
  add(kTrain + "a.npz");
  for (const char* name : {"b,c", "b\nc", "b\"c", "b\xff"}) {
    const std::string file = kTrain + name + ".npz";
    add(file);
    EXPECT_THAT(message_of<ConfigError>([&] { run(); }), HasSubstr("rename it"));
    fs::remove(npz_ / file);
  }
  fs::create_symlink("loop.npz", npz_ / (kTrain + "loop.npz"));
  EXPECT_THAT(message_of<IoError>([&] { run(); }),
              HasSubstr("loop.npz: a link to a file that is not there"));
  fs::remove(npz_ / (kTrain + "loop.npz"));
  fs::create_symlink("gone.npz", npz_ / (kTrain + "b.npz"));
  EXPECT_THAT(message_of<IoError>([&] { run(); }),
              AllOf(HasSubstr("b.npz: a link to a file that is not there"), HasSubstr("gone.npz")));
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(ConverterTest, SharesALittleMemory) {
  for (int i = 0; i < 8; ++i) add(kTrain + "g" + std::to_string(i) + ".npz");
  options_.memory_bytes = 1;
  options_.jobs = 4;
  EXPECT_EQ(run()[0].graphs, 8);
}

TEST_F(ConverterTest, AFullDiskIsAnErrorAndLeavesNothing) {
  add(kTrain + "a.npz");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};  // of a file's size; stands for a full disk
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      run();
    } catch (const IoError&) {
      std::exit(7);  // with HDF5's own clean-up, if it had any
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_EQ(run()[0].graphs, 1);
}

TEST_F(ConverterTest, AKilledRunLeavesWholeShardsOnlyAndTheNextOneFinishes) {
  for (int i = 0; i < 40; ++i) add(kTrain + "g" + std::to_string(i) + ".npz");
  for (const int milliseconds : {2, 5, 8, 12, 20}) {
    const pid_t child = fork();
    if (child == 0) {
      NoProgress progress;
      ConvertOptions options = options_;
      convert(options, progress);
      _exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (const std::string& file : files()) {
      if (file.ends_with(".h5")) EXPECT_EQ(summarize_shard(shards_ / file).graphs.size(), 1u);
    }
  }
  EXPECT_EQ(run()[0].graphs, 40);
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_THAT(files(), SizeIs(41));  // no temporary file is left
}

TEST_F(ConverterTest, LeavesACollectionToTheProcessThatConvertsIt) {
  add(kTrain + "a.npz");
  add("tile/xla/train/k.npz", NpzFixture::make_tile());
  fs::create_directories(shards_ / kTile.folder());
  {
    const FolderLock other(shards_ / kTile.folder(), "tpudist convert");
    EXPECT_THAT(message_of<Error>([&] { run(); }),
                HasSubstr("tile/xla: is in use by tpudist convert, process "));
    EXPECT_THAT(files(), ElementsAre("tile/xla/.tpudist-lock"));  // nothing was begun
    options_.collections = {kLayout};
    EXPECT_THAT(run(), SizeIs(1));
  }
  options_.collections.clear();
  EXPECT_THAT(run(), SizeIs(2));
}

std::string kernel(const std::vector<RunSketch>& runs) {
  const std::string program =
      module("fu/sion", {computation("main", 1, 1, {{"a", "tan", 1, {}, {}, {4}, {}}})});
  return tuned(program, runs, {}, true);
}

TEST_F(ConverterTest, TakesTuningFiles) {
  const std::vector<std::vector<std::vector<std::int64_t>>> small{{{1}, {2}, {3}}},
      large{{{2}, {4}, {6}}};
  const std::string good = kernel({{9, true, false, small},
                                   {7, false, true, small},
                                   {5, false, false, large}}),
                    single = kernel({{9, true, false, small}});
  const auto write = [&](const char* file, const std::vector<std::string>& kernels) {
    fs::create_directories((npz_ / file).parent_path());
    std::ofstream(npz_ / file, std::ios::binary) << proto([&](auto& to) {
      for (const std::string& own : kernels) to.add_message(1, own);
    });
  };
  add("tile/xla/train/other.npz", NpzFixture::make_tile());
  write("tile/xla/train/one.pb", {single, good, good});
  write("tile/xla/train/two.pb", {good});
  EXPECT_THAT(run().at(0).bad, IsEmpty());
  std::vector<std::string> names;
  for (const GraphEntry& graph : list_graphs(shards_, kTile)) names.push_back(graph.name);
  EXPECT_THAT(names, ElementsAre("one_fu_sion_1", "one_fu_sion_2", "other", "two_fu_sion_0"));
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_EQ(run().at(0).kept, 4);

  write("tile/xla/train/two.pb", {single});  // without a kernel that is kept
  options_.skip_bad = options_.replace = true;
  const ConvertedCollection again = run().at(0);
  ASSERT_THAT(again.bad, SizeIs(1));
  EXPECT_THAT(again.bad[0].error, HasSubstr("keep none of its 1 modules"));
  EXPECT_EQ(again.graphs, 3);
  EXPECT_THAT(problems(), IsEmpty());

  std::ofstream(npz_ / "tile/xla/train/one.pb", std::ios::app) << "more";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("one.pb")));  // said once
  add("tile/xla/train/one.npz", NpzFixture::make_tile());
  EXPECT_THROW(run(), ConfigError);  // one.npz and one.pb
}

}  // namespace
}  // namespace tpudist::test
