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
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

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
    convert_npz(folder_->path());
  }
  static void TearDownTestSuite() { delete folder_; }

  static DatasetOptions graphs_of(const std::string& collection) {
    return {.shards = *folder_ / "shards", .collection = Collection{collection}};
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
  const FoldTable random = split_into_folds(graphs_of("layout:nlp:random"), 2),
                  lacking = split_into_folds(graphs_of("layout:nlp:default"), 2);
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
  DatasetOptions wanted = graphs_of("layout:nlp:default");
  wanted.shards = alone.path();
  const FoldTable table = split_into_folds(wanted, 2);
  EXPECT_THAT(table.collections, ElementsAre("layout:nlp:default"));
  EXPECT_THAT(table.graphs, SizeIs(names_in("layout:nlp:default").size()));
  EXPECT_THAT(split_into_folds(graphs_of("tile:xla"), 2).collections, ElementsAre("tile:xla"));
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
  const FoldTable table = split_into_folds(graphs_of("tile:xla"), 2);
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
  DatasetOptions wanted = graphs_of("layout:nlp:random");
  wanted.exclude = {names_in("layout:nlp:random").back()};
  EXPECT_EQ(split_into_folds(wanted, 2).find(wanted.exclude.front()), nullptr);
  wanted.include = {names_in("layout:nlp:random").front()};
  EXPECT_THAT(message_of<ConfigError>([&] { split_into_folds(wanted, 2); }),
              HasSubstr("2 folds need as many model families"));
}

TEST_F(FoldTableTest, MatchesNamesOfOneCollectionAndIdsOfSeveral) {
  const auto left = [](const std::string& collection, const char* pattern) {
    DatasetOptions excluding = graphs_of(collection);
    excluding.exclude = {pattern};
    return split_into_folds(excluding, 2).graphs.size();
  };
  const std::size_t all = split_into_folds(graphs_of("layout:nlp:random"), 2).graphs.size();
  EXPECT_EQ(left("layout:nlp:random", "layout:*"), all);  // no name begins so
  // All but the ids of :default, which has one graph less.
  EXPECT_EQ(left("layout:nlp:random+layout:nlp:default", "layout:nlp:default:*"), all);
  EXPECT_EQ(left("layout:nlp:random+layout:nlp:default", "layout:nlp:random:*"), all - 1);
}

TEST_F(FoldTableTest, SplitsValidationGraphsTooWhereAskedTo) {
  DatasetOptions both = graphs_of("layout:nlp:random");
  both.second = SecondSplit{"valid", {}, {}};
  const FoldTable table = split_into_folds(both, 2);
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
            split_into_folds(graphs_of("layout:nlp:random"), 2).graphs.size() + valid);
  EXPECT_THAT(fold_table_text(table), HasSubstr("2 folds of the training and validation graphs"));
  both.second->exclude = {"*"};
  EXPECT_EQ(split_into_folds(both, 2).graphs.size(), table.graphs.size() - valid);
}

TEST_F(FoldTableTest, TakesFoldsFromAFile) {
  const fs::path file = *folder_ / "folds.yaml";
  const std::string first = names_in("layout:nlp:default").front();
  std::string lines = "graphs:\n  only_in_another_collection: 0\n";
  for (const std::string& name : names_in("layout:nlp:default"))
    lines += "  " + name + (name == first ? ": 1\n" : ": 0\n");
  write_file_atomically(file, lines);
  const FoldTable table = split_into_folds(graphs_of("layout:nlp:default"), 2, 1, file);
  EXPECT_EQ(table.origin, file.string());
  for (const FoldedGraph& graph : table.graphs) EXPECT_EQ(graph.fold, graph.name == first ? 1 : 0);
}

TEST_F(FoldTableTest, HashesWhatDecidesWhoTrainsOnWhat) {
  const FoldTable table = split_into_folds(graphs_of("layout:nlp:random"), 2);
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
  const FoldTable table = split_into_folds(graphs_of("layout:nlp:random"), 2);
  EXPECT_THAT(fold_table_text(table),
              AllOf(HasSubstr("2 folds of the training graphs of layout:nlp:default and "
                              "layout:nlp:random (seed 1)\n"),
                    HasSubstr("fold  families  graphs         nodes\n"),
                    HasSubstr(table.graphs.front().family)));
}

const std::vector<FoldedGraph> kGraphs = {{"bert_en_L-12_H-768", "bert_l12", 10, 0},
                                          {"mlperf_bert", "bert", 20, 0},
                                          {"resnet50.4x4.fp16", "resnet", 30, 0},
                                          {"resnet50.8x8.fp16", "resnet", 40, 0}};

std::string refusal(std::string_view yaml, int folds) {
  return message_of<ConfigError>(
      [&] { FoldFile::parse(yaml, "folds.yaml").folds_of(kGraphs, folds); });
}

TEST(FoldFile, GivesFoldsByNameByPatternAndByFamily) {
  const FoldFile file = FoldFile::parse(R"(
graphs:
  mlperf_bert: 2
  'resnet50.[48]x*': 0
families:
  bert_l*: 1
  nobody_is_called_so: 1
)",
                                        "folds.yaml");
  EXPECT_EQ(file.folds(), 3);
  EXPECT_THAT(file.folds_of(kGraphs, 3), ElementsAre(1, 2, 0, 0));
}

// Where several collections are one.
TEST(FoldFile, CoversGraphsThatAreNamedByTheirIds) {
  const FoldFile file = FoldFile::parse("graphs: {'res*': 1}\nfamilies: {bert: 0}\n", "folds.yaml");
  const std::vector<FoldedGraph> graphs = {{"layout:xla:default:resnet50", "resnet", 1, 0},
                                           {"layout:xla:random:resnet50", "resnet", 1, 0},
                                           {"layout:xla:random:bert", "bert", 1, 0}};
  EXPECT_THAT(file.folds_of(graphs, 2), ElementsAre(1, 1, 0));
}

TEST(FoldFile, NamesTheLineThatCoversAGraphAgain) {
  EXPECT_EQ(refusal("families:\n  '*': 0\ngraphs:\n  mlperf_bert: 1\n", 2),
            "folds.yaml:4:3: covers mlperf_bert, as line 2 does; one line must cover a graph");
}

TEST(FoldFile, NamesGraphsThatNoLineCovers) {
  EXPECT_EQ(refusal("families: {resnet: 1, bert: 0}", 2),
            "folds.yaml: no line covers bert_en_L-12_H-768 (bert_l12); add a line with the fold of "
            "each, by graph or by family");
}

TEST(FoldFile, RefusesAnotherNumberOfFolds) {
  EXPECT_EQ(refusal("families: {'*': 0}\n", 2),
            "folds.yaml: no line has fold 1, but 2 folds are asked for");
  EXPECT_EQ(refusal("families:\n  resnet: 2\n  'b*': 0\n", 2),
            "folds.yaml:2:3: fold 2 of 2: they count from 0");
  EXPECT_EQ(refusal("folds: 4\nfamilies:\n  '*': 0\n", 2),
            "folds.yaml: is for 4 folds, but 2 are asked for");
}

TEST(FoldFile, RefusesWhatIsNoFoldFileAndNamesThePlace) {
  EXPECT_THAT(refusal("graphs: [a, b]", 2), HasSubstr("folds.yaml:1:9: `graphs` must be a map"));
  EXPECT_THAT(refusal("- a", 2), HasSubstr("is a map with `graphs` or `families`"));
  EXPECT_THAT(refusal("models: {a: 1}", 2), HasSubstr("folds.yaml:1:1: \"models\" is none of"));
  EXPECT_THAT(refusal("graphs: {a: -1}", 2), HasSubstr("must be the number of a fold, from 0"));
  EXPECT_THAT(refusal("graphs: {a: first}", 2), HasSubstr("must be the number of a fold"));
  EXPECT_THAT(refusal("folds: 2\ngraphs:\n  a: 2", 2),
              HasSubstr("folds.yaml:3:6: must be a fold, 0 to 1"));
  EXPECT_THAT(refusal("graphs: {a: 0, a: 1}", 2), HasSubstr("folds.yaml:1:16"));
  EXPECT_THAT(refusal("", 2), HasSubstr("folds.yaml"));
  EXPECT_THAT(refusal("graphs: {", 2), HasSubstr("folds.yaml:"));
}

TEST(FoldFile, ReadsWhatIsWritten) {
  FoldTable table;
  table.folds = 4;  // of which one is empty
  table.collections = {"layout:xla:default", "layout:xla:random"};
  table.origin = "seed 7";
  table.graphs = kGraphs;
  table.graphs.push_back({"so [it] is: *odd*", "so", 1, 3});
  for (std::size_t g = 0; g < kGraphs.size(); ++g) table.graphs[g].fold = static_cast<int>(g % 2);
  const std::string text = fold_file_text(table);
  EXPECT_THAT(text, HasSubstr("# 4 folds of the training graphs of layout:xla:default and "
                              "layout:xla:random (seed 7)."));
  EXPECT_THAT(FoldFile::parse(text, "folds.yaml").folds_of(table.graphs, 4),
              ElementsAre(0, 1, 0, 1, 3));
}

}  // namespace
}  // namespace tpudist::test
