#include "data/loading/fold_table.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/progress.hpp"
#include "data/shards/shard_reader.hpp"
#include "data/synth/synth.hpp"
#include "tests/support/converted.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace fs = std::filesystem;

// Training graphs of layout:nlp:random and :default, and of tile:xla. The first training graph of
// :random is missing in :default.
class FoldTableTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    NoProgress progress;
    SynthOptions synth;
    synth.preset = "tiny";
    synthesise(synth, *folder_ / "npz", progress);
    const fs::path random = *folder_ / "npz/layout/nlp/random/train",
                   lacking = *folder_ / "npz/layout/nlp/default/train";
    std::set<fs::path> names;
    for (const auto& file : fs::directory_iterator(random)) names.insert(file.path().filename());
    fs::remove(lacking / *names.begin());
    test::convert_npz(folder_->path());
  }
  static void TearDownTestSuite() { delete folder_; }

  static FoldRequest request(const std::string& collection, int folds) {
    return {.shards = *folder_ / "shards", .collection = Collection{collection}, .folds = folds};
  }
  static std::vector<std::string> names_in(const std::string& collection) {
    std::vector<std::string> names;
    for (const GraphEntry& entry :
         list_graphs(*folder_ / "shards", Collection{collection}, "train"))
      names.push_back(entry.name);
    return names;
  }

  static TempDir* folder_;
};
TempDir* FoldTableTest::folder_ = nullptr;

TEST_F(FoldTableTest, SplitsRandomAndDefaultOfASourceTogether) {
  ASSERT_LT(names_in("layout:nlp:default").size(), names_in("layout:nlp:random").size());
  const FoldTable random = split_into_folds(request("layout:nlp:random", 2)),
                  lacking = split_into_folds(request("layout:nlp:default", 2));
  EXPECT_THAT(random.collections, ElementsAre("layout:nlp:default", "layout:nlp:random"));
  EXPECT_EQ(lacking.collections, random.collections);
  ASSERT_EQ(lacking.graphs.size(), random.graphs.size());
  std::map<std::string, int> fold_of_family;
  for (std::size_t g = 0; g < random.graphs.size(); ++g) {
    EXPECT_EQ(lacking.graphs[g].name, random.graphs[g].name);
    EXPECT_EQ(lacking.graphs[g].fold, random.graphs[g].fold);
    EXPECT_EQ(fold_of_family.emplace(random.graphs[g].family, random.graphs[g].fold).first->second,
              random.graphs[g].fold);
  }
}

TEST_F(FoldTableTest, TakesACollectionAloneWhereItsSiblingIsNotThere) {
  const TempDir alone;
  fs::create_directories(alone / "layout/nlp");
  fs::copy(*folder_ / "shards/layout/nlp/default", alone / "layout/nlp/default",
           fs::copy_options::recursive);
  FoldRequest wanted = request("layout:nlp:default", 2);
  wanted.shards = alone.path();
  const FoldTable table = split_into_folds(wanted);
  EXPECT_THAT(table.collections, ElementsAre("layout:nlp:default"));
  EXPECT_THAT(table.graphs, SizeIs(names_in("layout:nlp:default").size()));
  EXPECT_THAT(split_into_folds(request("tile:xla", 2)).collections, ElementsAre("tile:xla"));
}

TEST(SplitFamilyWarning, NamesTheFamiliesAndTheFile) {
  FoldTable table;
  table.folds = 2;
  table.origin = "folds.yaml";
  table.graphs = {{"bert_1", "bert", 5, 0}, {"bert_2", "bert", 5, 0}, {"ssd_1", "ssd", 5, 1}};
  EXPECT_EQ(split_family_warning(table), "");
  table.graphs.push_back({"ssd_2", "ssd", 5, 0});
  EXPECT_THAT(split_family_warning(table),
              HasSubstr("folds.yaml splits model families over several folds: ssd;"));
}

TEST_F(FoldTableTest, WeighsGraphsByTheirNodes) {
  const FoldTable table = split_into_folds(request("tile:xla", 2));
  std::map<int, std::int64_t> nodes;
  std::map<std::string, std::int64_t> family;
  for (const FoldedGraph& graph : table.graphs) {
    nodes[graph.fold] += graph.nodes;
    family[graph.family] += graph.nodes;
  }
  std::int64_t largest = 0;
  for (const auto& [name, sum] : family) largest = std::max(largest, sum);
  EXPECT_LE(std::abs(nodes[0] - nodes[1]), largest);
}

TEST_F(FoldTableTest, LeavesOutWhatIsExcluded) {
  FoldRequest wanted = request("layout:nlp:random", 2);
  wanted.exclude = {names_in("layout:nlp:random").back()};
  EXPECT_EQ(split_into_folds(wanted).find(wanted.exclude.front()), nullptr);
  wanted.include = {names_in("layout:nlp:random").front()};
  try {
    split_into_folds(wanted);
    FAIL() << "should have thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("2 folds need as many model families"));
  }
}

TEST_F(FoldTableTest, MatchesNamesOfOneCollectionAndIdsOfSeveral) {
  const auto left = [](const std::string& collection, const char* pattern) {
    FoldRequest excluding = request(collection, 2);
    excluding.exclude = {pattern};
    return split_into_folds(excluding).graphs.size();
  };
  const std::size_t all = split_into_folds(request("layout:nlp:random", 2)).graphs.size();
  EXPECT_EQ(left("layout:nlp:random", "layout:*"), all);  // no name begins so
  // All but the ids of :default, which has one graph less.
  EXPECT_EQ(left("layout:nlp:random+layout:nlp:default", "layout:nlp:default:*"), all);
  EXPECT_EQ(left("layout:nlp:random+layout:nlp:default", "layout:nlp:random:*"), all - 1);
}

TEST_F(FoldTableTest, SplitsValidationGraphsTooWhereAskedTo) {
  FoldRequest both = request("layout:nlp:random", 2);
  both.with_valid = true;
  const FoldTable table = split_into_folds(both);
  EXPECT_TRUE(table.with_valid);
  std::map<std::string, std::set<int>> folds_of_family;
  for (const FoldedGraph& graph : table.graphs) folds_of_family[graph.family].insert(graph.fold);
  for (const auto& [family, folds] : folds_of_family) EXPECT_THAT(folds, SizeIs(1)) << family;
  std::size_t valid = 0;
  for (const GraphEntry& entry :
       list_graphs(*folder_ / "shards", Collection{"layout:nlp:random"}, "valid")) {
    EXPECT_NE(table.find(entry.name), nullptr) << entry.name;
    ++valid;
  }
  EXPECT_GT(valid, 0u);
  EXPECT_EQ(table.graphs.size(),
            split_into_folds(request("layout:nlp:random", 2)).graphs.size() + valid);
  EXPECT_THAT(fold_table_text(table), HasSubstr("2 folds of the training and validation graphs"));
  both.exclude_valid = {"*"};
  EXPECT_EQ(split_into_folds(both).graphs.size(), table.graphs.size() - valid);
}

TEST_F(FoldTableTest, TakesFoldsFromAFile) {
  FoldRequest wanted = request("layout:nlp:default", 2);
  wanted.file = *folder_ / "folds.yaml";
  const std::string first = names_in("layout:nlp:default").front();
  std::string lines = "graphs:\n  only_in_another_collection: 0\n";
  for (const std::string& name : names_in("layout:nlp:default"))
    lines += "  " + name + (name == first ? ": 1\n" : ": 0\n");
  write_file_atomically(wanted.file, lines);
  const FoldTable table = split_into_folds(wanted);
  EXPECT_EQ(table.origin, wanted.file.string());
  for (const FoldedGraph& graph : table.graphs) EXPECT_EQ(graph.fold, graph.name == first ? 1 : 0);
}

TEST_F(FoldTableTest, HashesWhatDecidesWhoTrainsOnWhat) {
  const FoldTable table = split_into_folds(request("layout:nlp:random", 2));
  std::vector<std::string> names = names_in("layout:nlp:default");
  const std::uint64_t hash = hash_of_folds(table, names);
  FoldTable other = table;
  other.origin = "elsewhere";
  other.graphs.front().nodes += 1;
  EXPECT_EQ(hash_of_folds(other, {names.rbegin(), names.rend()}), hash);
  for (FoldedGraph& graph : other.graphs) {
    if (graph.name == names.front()) graph.fold = 1 - graph.fold;
  }
  EXPECT_NE(hash_of_folds(other, names), hash);
}

TEST_F(FoldTableTest, ShowsFoldsAndFamilies) {
  const FoldTable table = split_into_folds(request("layout:nlp:random", 2));
  EXPECT_THAT(fold_table_text(table),
              AllOf(HasSubstr("2 folds of the training graphs of layout:nlp:default and "
                              "layout:nlp:random (seed 1)\n"),
                    HasSubstr("fold  families  graphs         nodes\n"),
                    HasSubstr(table.graphs.front().family)));
}

}  // namespace
}  // namespace tpudist
