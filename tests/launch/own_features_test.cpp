#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/data/npz/own_features.hpp"
#include "tests/launch/tiny_folder.hpp"

namespace tpudist::test {
namespace {

// A folder in which a user has graphs of another compiler: no opcodes, 7 node features, and
// configurations of 3 features for each of some nodes, or of 2 for the graph.
class OwnFeaturesCommands : public TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start();
    ok("convert npz shards");
    ok("train layo.yaml --quiet --run-dir run");
  }
  static void start() {
    folder_ = std::make_unique<TempDir>();
    OwnFeatures{}.write_splits(*folder_ / "npz/layout/mine/v1");
    OwnFeatures{.config_features = 2, .tile = true}.write_splits(*folder_ / "npz/tile/mine");
    for (const std::string collection : {"layout:mine:v1", "tile:mine"}) {
      std::ofstream(*folder_ / (collection.substr(0, 4) + ".yaml")) << R"(
name: own
data: {shards: shards, collection: ")" << collection << R"("}
batch: {slates: 4, configs: 8}
model: {preset: latenciaga_xla, blocks: [{layer: sage, width: 16}], readout: {scale: 1}}
loss: {list_mle: {weight: 1}}
optimizer: {name: adamw, lr: 1e-2}
train: {steps: 300, last_evaluation: none}
ensemble: {members: 2}
dist: {threads: 1, device: cpu}
)";
    }
  }

  static std::string ok(const std::string& arguments) {
    const Outcome outcome = call(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << ": " << outcome.output;
    return outcome.output;
  }
  // The last line of a call that fails so.
  static std::string fails(const std::string& arguments, int code) {
    const Outcome outcome = call(arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments << ": " << outcome.output;
    std::string text = outcome.output;
    if (!text.empty()) text.pop_back();
    return text.substr(text.rfind('\n') + 1);
  }
  static nlohmann::json ranking(const std::string& file, const std::string& run) {
    return nlohmann::json::parse(ok("rank " + file + " --run " + run + " --top 0 --json --quiet"));
  }
};

TEST_F(OwnFeaturesCommands, ConvertVerifyAndInspect) {
  EXPECT_THAT(ok("verify shards --npz npz"), HasSubstr("540 configurations sound, 0 problems"));
  const std::string manifest = read_text_file(*folder_ / "shards/layout/mine/v1/manifest.json");
  EXPECT_EQ(nlohmann::json::parse(manifest).at("schema"),
            nlohmann::json::parse(R"({"node_features": 7, "config_features": 3, "opcodes": 0,
                                      "layout_columns": "none", "dimension_columns": "none"})"));
  EXPECT_THAT(ok("inspect shards"),
              HasSubstr("7 node features, 3 configuration features, no opcodes"));
  EXPECT_THAT(ok("inspect shards --suspects"), HasSubstr("layout:mine:v1"));
  // A second conversion keeps all.
  EXPECT_THAT(ok("convert npz shards"), HasSubstr("9 kept"));
}

TEST_F(OwnFeaturesCommands, TrainedMembersRankUnseenGraphs) {
  ok("evaluate run --quiet --json scores.json");
  const auto scores = nlohmann::json::parse(read_text_file(*folder_ / "scores.json"));
  for (const auto& graph : scores.at("ensemble").at("graphs"))
    EXPECT_GT(graph.at("kendall_tau").get<double>(), 0.8) << graph.dump(1);

  ok("predict run --split test --csv out.csv --quiet");
  const std::vector<int> row = submission_row(*folder_ / "out.csv", "layout:mine:v1:c0");
  ASSERT_FALSE(row.empty());
  const auto json = ranking("npz/layout/mine/v1/test/c0.npz", "run");
  EXPECT_EQ(json.at("ranking").at(0).at("config"), row.front());
  EXPECT_GT(json.at("kendall_tau").get<double>(), 0.8);
}

TEST_F(OwnFeaturesCommands, TileGraphsToo) {
  ok("train tile.yaml --quiet --run-dir tile_run");
  ok("evaluate tile_run --quiet");
  EXPECT_GT(ranking("npz/tile/mine/test/c0.npz", "tile_run").at("kendall_tau").get<double>(), 0.8);
}

TEST_F(OwnFeaturesCommands, ARunKnowsItsSchemaWithoutTheShards) {
  std::filesystem::rename(*folder_ / "shards", *folder_ / "moved");
  const auto json = ranking("npz/layout/mine/v1/test/c0.npz", "run");
  EXPECT_THAT(ok("config show run/config.yaml"), HasSubstr("node_features"));
  std::filesystem::rename(*folder_ / "moved", *folder_ / "shards");
  EXPECT_EQ(json, ranking("npz/layout/mine/v1/test/c0.npz", "run"));
}

TEST_F(OwnFeaturesCommands, WeightsAndResumes) {
  ok("weights export run w.safetensors");
  ok("weights import layo.yaml w-member-0.safetensors w-member-1.safetensors --run-dir imported");
  const std::string file = "npz/layout/mine/v1/test/c0.npz";
  EXPECT_EQ(ranking(file, "run").at("ranking"), ranking(file, "imported").at("ranking"));
  ok("train layo.yaml --run-dir run --resume --quiet");
  // Nothing of this encoder is trained.
  ok("train layo.yaml 'model.encoder={node_width: 0, width: 0}' train.steps=2 --run-dir bare "
     "--quiet");
}

TEST_F(OwnFeaturesCommands, RefusesWhatIsOfAnotherSchema) {
  OwnFeatures{.node_features = 9}.write(*folder_ / "wide.npz", 1);
  EXPECT_THAT(fails("rank wide.npz --run run", 3),
              HasSubstr("wide.npz: node_feat has shape [10, 9] but must have [n, 7]"));
  OwnFeatures{.config_features = 4}.write(*folder_ / "deep.npz", 1);
  EXPECT_THAT(fails("rank deep.npz --run run", 3),
              HasSubstr("has shape [60, 3, 4] but must have [60, 3, 3]"));
  OwnFeatures{.opcodes = true}.write(*folder_ / "coded.npz", 1);
  EXPECT_THAT(fails("rank coded.npz --run run", 3), HasSubstr("layout:mine:v1 has no opcodes"));
  // Shards of other graphs under the same name.
  OwnFeatures{.node_features = 9}.write_splits(*folder_ / "npz9/layout/mine/v1");
  ok("convert npz9 shards9");
  EXPECT_THAT(fails("evaluate run --data shards9", 3),
              HasSubstr("have 9 node features, 3 configuration features, no opcodes"));
  // A second run must know the schema of the first, whichever that is.
  ok("train layo.yaml data.shards=shards9 train.steps=2 --quiet --run-dir run9");
  const std::string file = "rank npz/layout/mine/v1/test/c0.npz";
  EXPECT_THAT(fails(file + " --run run --run run9", 2),
              HasSubstr("is for graphs with 9 node features"));
  EXPECT_THAT(fails(file + " --run run9 --run run", 3), HasSubstr("must have [n, 9]"));
  EXPECT_THAT(fails("train layo.yaml --run-dir run --resume data.shards=shards9", 2),
              HasSubstr("data.schema.node_features"));
}

TEST_F(OwnFeaturesCommands, RefusesOptionsThatNeedWhatTheSchemaLacks) {
  EXPECT_THAT(fails("train layo.yaml --run-dir r model.encoder.opcode_width=4", 2),
              HasSubstr("embeds opcodes"));
  EXPECT_THAT(fails("train layo.yaml --run-dir r model.encoder.code_width=4", 2),
              HasSubstr("names no layout_columns"));
  EXPECT_THAT(fails("train layo.yaml --run-dir r model.encoder.node_columns=0-7", 2),
              HasSubstr("below 7"));
  ok("train layo.yaml --run-dir columns --quiet train.steps=2 model.encoder.node_columns=0-2,5 "
     "model.encoder.node_transform=standardised model.encoder.config_transform=standardised");
}

// Reading of the sources, by hostile folders.
class OwnSources : public OwnFeaturesCommands {
 protected:
  static void SetUpTestSuite() { start(); }
  void SetUp() override { std::filesystem::create_directories(mine_); }
  void TearDown() override {
    for (const char* name : {"src", "dst"}) std::filesystem::remove_all(*folder_ / name);
  }
  void schema(const std::string& text) const { std::ofstream(mine_ / "schema.yaml") << text; }

  const std::filesystem::path mine_ = *folder_ / "src/layout/mine/v1";
};

TEST_F(OwnSources, AllGraphsOfACollectionAgree) {
  OwnFeatures{}.write_splits(mine_);
  OwnFeatures{.node_features = 8}.write(mine_ / "train/z.npz", 5);
  OwnFeatures{.opcodes = true}.write(mine_ / "train/y.npz", 5);
  OwnFeatures{.config_features = 4}.write(mine_ / "train/x.npz", 5);
  const std::string outcome = output_of(call("convert src dst"), 3);
  EXPECT_THAT(outcome, HasSubstr("z.npz: node_feat has shape [10, 8] but must have [n, 7]"));
  EXPECT_THAT(outcome, HasSubstr("y.npz: node_opcode is there, but layout:mine:v1 has no"));
  EXPECT_THAT(outcome, HasSubstr("x.npz: node_config_feat has shape [60, 3, 4] but must"));
  EXPECT_FALSE(std::filesystem::exists(*folder_ / "dst/layout/mine/v1/manifest.json"));
}

TEST_F(OwnSources, TheSchemaFileTellsWhatArraysDoNot) {
  OwnFeatures{.opcodes = true}.write_splits(mine_);
  // 200 is an opcode only where the file says so.
  EXPECT_THAT(
      call("convert src dst").output,
      HasSubstr("node_opcode[0] = 200 is not an opcode (0 to 119; `opcodes` in schema.yaml"));
  schema("opcodes: 201\nlayout_columns: 2-3\n");
  ok("convert src dst");
  EXPECT_THAT(ok("inspect dst"), HasSubstr("201 opcodes, layout columns 2-3"));
  EXPECT_THAT(ok("verify dst --npz src"), HasSubstr("0 problems"));
  // Node features 1 to 9 are no layouts: the embedding says so.
  EXPECT_THAT(fails("train layo.yaml data.shards=dst --run-dir r model.encoder.code_width=4", 3),
              HasSubstr("the layout value (columns 2-3) of a node"));
  ok("train layo.yaml data.shards=dst --run-dir coded --quiet train.steps=3");
  EXPECT_THAT(fails("rank npz/layout/mine/v1/test/c0.npz --run coded", 3),
              HasSubstr("array node_opcode is missing"));
  // Another schema of the same files: verify sees it, a conversion makes them anew.
  schema("opcodes: 220\n");
  EXPECT_THAT(call("verify dst --npz src").output, HasSubstr("its sources have 7 node features"));
  EXPECT_THAT(ok("convert src dst"), Not(HasSubstr("9 kept")));
  EXPECT_THAT(ok("inspect dst"), HasSubstr("220 opcodes"));
}

TEST_F(OwnSources, RefusesASchemaFileThatIsWrong) {
  OwnFeatures{}.write_splits(mine_);
  schema("node_features: 9\n");
  EXPECT_THAT(call("convert src dst").output,
              HasSubstr("node_feat has shape [10, 7] but must have [n, 9]"));
  schema("opcodes: 5\n");
  EXPECT_THAT(call("convert src dst").output, HasSubstr("array node_opcode is missing"));
  for (const auto& [text, message] :
       {std::pair("node_features: 0", "node_features"), std::pair("layout_columns: 5-9", "below 7"),
        std::pair("layout_columns: 4-2", "below 7"), std::pair("opcodes: 257", "opcodes"),
        std::pair("columns: 3", "columns"), std::pair("- 3", "schema.yaml"),
        std::pair("a: [", "schema.yaml")}) {
    schema(text);
    EXPECT_THAT(fails("convert src dst", 2), HasSubstr(message)) << text;
  }
  std::filesystem::remove(mine_ / "schema.yaml");
  OwnFeatures{}.write_splits(*folder_ / "src/layout/xla/random");
  EXPECT_THAT(call("convert src dst --collections layout:xla:random").output,
              HasSubstr("node_feat has shape [10, 7] but must have [n, 140]\n"));
  std::ofstream(*folder_ / "src/layout/xla/random/schema.yaml") << "opcodes: 3\n";
  EXPECT_THAT(fails("convert src dst --collections layout:xla:random", 2),
              HasSubstr("layout:xla:random has the schema of TpuGraphs"));
}

TEST_F(OwnSources, WidthsComeFromTheFirstFileThatHasThem) {
  OwnFeatures{}.write_splits(mine_);
  OwnFeatures{.node_features = 0}.write(mine_ / "train/a.npz", 5);
  std::ofstream(mine_ / "train/a-.npz") << "no zip";
  EXPECT_THAT(call("convert src dst").output,
              HasSubstr("a.npz: node_feat has shape [10, 0] but must have [n, 7]"));
  fails("convert src dst --on-error skip", 3);
  EXPECT_THAT(ok("inspect dst"), HasSubstr("7 node features"));
}

TEST_F(OwnSources, AChangedManifestIsRefused) {
  OwnFeatures{}.write_splits(mine_);
  ok("convert src dst");
  const auto path = *folder_ / "dst/layout/mine/v1/manifest.json";
  std::string text = read_text_file(path);
  const std::size_t at = text.find("\"node_features\": 7");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 18, "\"node_features\": 8");
  write_file_atomically(path, text);
  EXPECT_THAT(fails("train layo.yaml data.shards=dst --run-dir changed", 3),
              HasSubstr("was changed or is damaged"));
}

}  // namespace
}  // namespace tpudist::test
