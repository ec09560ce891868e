#include "data/loading/fold_file.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<FoldedGraph> kGraphs = {{"bert_en_L-12_H-768", "bert_l12", 10, 0},
                                          {"mlperf_bert", "bert", 20, 0},
                                          {"resnet50.4x4.fp16", "resnet", 30, 0},
                                          {"resnet50.8x8.fp16", "resnet", 40, 0}};

std::string message_of(std::string_view yaml, int folds) {
  return test::message_of<ConfigError>(
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
  EXPECT_EQ(message_of("families:\n  '*': 0\ngraphs:\n  mlperf_bert: 1\n", 2),
            "folds.yaml:4:3: covers mlperf_bert, as line 2 does; one line must cover a graph");
}

TEST(FoldFile, NamesGraphsThatNoLineCovers) {
  EXPECT_EQ(message_of("families: {resnet: 1, bert: 0}", 2),
            "folds.yaml: no line covers bert_en_L-12_H-768 (bert_l12); add a line with the fold of "
            "each, by graph or by family");
}

TEST(FoldFile, RefusesAnotherNumberOfFolds) {
  EXPECT_EQ(message_of("families: {'*': 0}\n", 2),
            "folds.yaml: no line has fold 1, but 2 folds are asked for");
  EXPECT_EQ(message_of("families:\n  resnet: 2\n  'b*': 0\n", 2),
            "folds.yaml:2:3: fold 2 of 2: they count from 0");
  EXPECT_EQ(message_of("folds: 4\nfamilies:\n  '*': 0\n", 2),
            "folds.yaml: is for 4 folds, but 2 are asked for");
}

TEST(FoldFile, RefusesWhatIsNoFoldFileAndNamesThePlace) {
  EXPECT_THAT(message_of("graphs: [a, b]", 2), HasSubstr("folds.yaml:1:9: `graphs` must be a map"));
  EXPECT_THAT(message_of("- a", 2), HasSubstr("is a map with `graphs` or `families`"));
  EXPECT_THAT(message_of("models: {a: 1}", 2), HasSubstr("folds.yaml:1:1: \"models\" is none of"));
  EXPECT_THAT(message_of("graphs: {a: -1}", 2), HasSubstr("must be the number of a fold, from 0"));
  EXPECT_THAT(message_of("graphs: {a: first}", 2), HasSubstr("must be the number of a fold"));
  EXPECT_THAT(message_of("folds: 2\ngraphs:\n  a: 2", 2),
              HasSubstr("folds.yaml:3:6: must be a fold, 0 to 1"));
  EXPECT_THAT(message_of("graphs: {a: 0, a: 1}", 2), HasSubstr("folds.yaml:1:16"));
  EXPECT_THAT(message_of("", 2), HasSubstr("folds.yaml"));
  EXPECT_THAT(message_of("graphs: {", 2), HasSubstr("folds.yaml:"));
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
}  // namespace tpudist
