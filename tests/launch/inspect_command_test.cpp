// `tpudist inspect` as a user calls it.

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/results/inspect/measured_graph.hpp"
#include "tests/support/converted.hpp"
#include "tests/support/real_data.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist::test {
namespace {

Outcome inspect_file(const std::filesystem::path& file, const std::string& arguments = "") {
  return run_program("inspect " + file.string() + " " + arguments);
}

TEST(InspectModule, ShowsOperationsGroupsAndStates) {
  const auto modules = jax_modules();
  EXPECT_THAT(output_of(inspect_file(modules / "layouts_before.pb",
                                     "--default " + (modules / "layouts_after.pb").string())),
              AllOf(HasSubstr("layouts_before.pb: HloProto\n"),
                    HasSubstr("jit_f: 21 nodes in 1 computation, 26 edges\n"),
                    HasSubstr("6 configurable operations (2 convolution, 2 dot, 2 reshape) in 4 "
                              "groups: 288 configurations\n"),
                    ContainsRegex(" 2 +8 +convolution +out \\{3,0\\} in \\{3,0\\} kernel "
                                  "\\{3,2\\} +conv_general_dilated.2\n")));
}

TEST(InspectModule, SaysTheSameInJson) {
  const auto proto = nlohmann::json::parse(
      output_of(inspect_file(jax_modules() / "layouts_before.pb", "--json 2> /dev/null")));
  EXPECT_EQ(proto["kind"], "HloProto");
  const auto& module = proto["modules"].at(0);
  EXPECT_EQ(module["configurations"], 288);
  EXPECT_EQ(module["opcodes"]["convolution"], 2);
  EXPECT_EQ(module["warnings"].size(), 1u);
  ASSERT_EQ(module["groups"].size(), 4u);
  std::size_t operations = 0;
  for (const auto& group : module["groups"]) operations += group["operations"].size();
  EXPECT_EQ(operations, 6u);
  EXPECT_EQ(module["nodes"], 21);
  EXPECT_EQ(module["edges"], 26);
}

TEST(InspectModule, WarnsOfTheWrongStage) {
  EXPECT_THAT(output_of(inspect_file(jax_modules() / "layouts_after.pb", "2>&1")),
              HasSubstr("it was dumped too late to choose layouts"));
  EXPECT_THAT(output_of(inspect_file(jax_modules() / "sort.pb", "2>&1")),
              AllOf(HasSubstr("no convolution, dot or reshape"),
                    HasSubstr("--xla_dump_hlo_pass_re=.*layout-assignment.*")));
}

TEST(InspectModule, TakesDefaultsFromTuningFiles) {
  const auto root = real_data_root();
  if (!root) GTEST_SKIP() << "the real data set is not on this machine (TPUDIST_REAL_DATA)";
  EXPECT_THAT(inspect_file(*root / "pb/module_tuning_data_layout.pb", "2>&1").output,
              AllOf(HasSubstr("3,163 nodes in 143 computations, 5,112 edges, 112 measured"),
                    HasSubstr("(53 convolution, 0 dot, 9 reshape) in 8 groups: 3,145,728 "),
                    Not(HasSubstr("warning"))));
  EXPECT_THAT(inspect_file(*root / "pb/op_tuning_data.pb", "2>&1").output,
              AllOf(HasSubstr(": TuningData\n"),
                    HasSubstr("fusion.191: 31 nodes in 5 computations, 32 edges, 579 "
                              "measured configurations\n"),
                    Not(HasSubstr("configurable"))));
}

TEST(InspectModule, PrintsNamesThatATerminalDoesNotObey) {
  const TempDir folder;
  const std::string odd = "a\x1b[31mb\x7f";
  write_file_atomically(
      folder / (odd + ".pb"),
      module("m\x1b[2J", {computation("c", 1, 1, {{"x\ny", "after-all", 1, {}, {}, {}, {}}})}));
  for (const char* end : {".pb' 2>&1", ".pb' --json 2>&1", ".none' 2>&1"}) {
    const Outcome outcome = run_program("inspect '" + (folder / odd).string() + end);
    EXPECT_THAT(outcome.output, Not(HasSubstr("\x1b"))) << end;
    EXPECT_THAT(outcome.output, ContainsRegex("31mb")) << end;
  }
}

TEST(InspectModule, RefusesWhatItCannotShow) {
  const auto modules = jax_modules();
  const TempDir folder;
  write_file_atomically(folder / "text.pb", "neither of them");
  EXPECT_THAT(output_of(inspect_file(folder / "text.pb", "2>&1"), 3),
              HasSubstr("text.pb: is damaged, or none of HloProto"));
  write_file_atomically(folder / "mark.txt", "\xef\xbb\xbfHloModule m");
  EXPECT_THAT(inspect_file(folder / "mark.txt", "2>&1").output, HasSubstr("a byte order mark"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);  // that nobody writes
  EXPECT_THAT(inspect_file(folder / "pipe", "2>&1").output, HasSubstr("pipe: is empty or no reg"));
  EXPECT_THAT(output_of(inspect_file(modules / "layouts_before.pb",
                                     "--default " + (modules / "sort.pb").string() + " 2>&1"),
                        3),
              HasSubstr("sort.pb: names none of the configurable operations"));
  EXPECT_THAT(output_of(inspect_file(modules / "sort.pb", "--ceiling 2>&1"), 2),
              HasSubstr("A file holds modules"));
  EXPECT_THAT(
      output_of(inspect_file(modules, "--default " + (modules / "sort.pb").string() + " 2>&1"), 2),
      HasSubstr("Needs a file, not shards"));
}

// A training graph with enough repeated measurements, one with too few, and none of another split.
class InspectCeilings : public FolderTest {
 protected:
  InspectCeilings() {
    const auto write = [&](int configs, const std::string& file) {
      const NoisyGraph graph(NoisyGraph::smooth, configs, 0.004, 1);
      measured(graph).write(folder_ / "npz/layout/own/random/train" / file, {.deflate_level = 1});
    };
    write(300, "one.npz");
    write(20, "few.npz");
    convert_npz(folder_.path());
  }

  Outcome inspect(const std::string& arguments) const {
    return run_program("inspect " + (folder_ / "shards").string() + " " + arguments + " 2>&1");
  }
};

TEST_F(InspectCeilings, ShowsGraphsAndTheMeanOfThoseThatHaveOne) {
  EXPECT_THAT(output_of(inspect("--ceiling")),
              AllOf(HasSubstr("layout:own:random\n"), HasSubstr("ceiling (95 % interval)"),
                    ContainsRegex("train  one +[0-9]+ +300 +[0-9]+ +0\\.[0-9]+ %  0\\.[89][0-9]+"),
                    ContainsRegex("train  few +[0-9]+ +20 +- +-  "),
                    ContainsRegex("train  mean ceiling 0\\.[89][0-9]+ of 1 of 2 graphs\n"),
                    Not(HasSubstr("valid"))));
}

TEST_F(InspectCeilings, WritesJson) {
  const auto json =
      nlohmann::json::parse(output_of(inspect("--ceiling --json --collection layout:own:random")))
          .at("layout:own:random");
  ASSERT_EQ(json.at("graphs").size(), 2u);
  for (const auto& graph : json.at("graphs")) {
    const bool known = graph.at("name") == "one";
    EXPECT_EQ(graph.at("ceiling").is_number(), known) << graph;
    EXPECT_EQ(graph.at("reason").is_string(), !known) << graph;
    if (!known) continue;
    EXPECT_EQ(graph.at("ceiling"), json.at("mean").at("train"));
    EXPECT_LT(graph.at("interval").at(0), graph.at("ceiling"));
    EXPECT_NEAR(graph.at("noise").get<double>(), 0.004, 0.001);
  }
}

TEST_F(InspectCeilings, SaysWhatCannotBe) {
  EXPECT_EQ(inspect("--ceiling --suspects").exit_code, 2);
  EXPECT_THAT(output_of(inspect("--ceiling --collection layout:xla:random"), 2),
              HasSubstr("layout:xla:random"));
  const std::filesystem::path shard = folder_ / "shards/layout/own/random/train/shard-00000.h5";
  ASSERT_TRUE(std::filesystem::exists(shard));
  std::filesystem::resize_file(shard, 100);
  EXPECT_THAT(output_of(inspect("--ceiling"), 3), HasSubstr("shard-00000.h5"));
  write_file_atomically(shard.parent_path().parent_path() / "manifest.json", "{");
  EXPECT_EQ(inspect("--ceiling").exit_code, 3);
}

Outcome inspect(const std::string& arguments) {
  return run_program("inspect " + tiny_shards().string() + " " + arguments + " 2>&1");
}

TEST(InspectFolds, ShowsEachSourceOnce) {
  const auto json = nlohmann::json::parse(output_of(inspect("--folds 2 --json")));
  std::vector<std::string> first;
  for (const auto& table : json) first.push_back(table.at("collections").at(0));
  EXPECT_THAT(first, ElementsAre("tile:xla", "layout:xla:default", "layout:nlp:default"));
  EXPECT_THAT(inspect("--folds 2 --collection layout:xla:random").output,
              HasSubstr("2 folds of the training graphs of layout:xla:default and "
                        "layout:xla:random (seed 1)"));
}

TEST(InspectFolds, WritesAFileThatItShowsAgain) {
  const TempDir folder;
  const std::string file = (folder / "folds.yaml").string();
  const std::string written =
      output_of(inspect("--collection tile:xla --folds 3 --seed 4 --json --write-folds " + file));
  EXPECT_EQ(
      nlohmann::json::parse(output_of(inspect("--collection tile:xla --json --fold-file " + file)))
          .at(0)
          .at("graphs"),
      nlohmann::json::parse(written).at(0).at("graphs"));
}

TEST(InspectFolds, SaysWhatCannotBe) {
  const TempDir folder;
  const std::string file = (folder / "folds.yaml").string();
  EXPECT_THAT(output_of(inspect("--collection layout:xla:random --folds 100"), 2),
              HasSubstr("100 folds need as many model families"));
  EXPECT_THAT(inspect("--folds 2 --write-folds " + file).output,
              HasSubstr("name one with --collection"));
  EXPECT_THAT(inspect("--write-folds " + file).output, HasSubstr("Needs --folds or --fold-file"));
  write_file_atomically(file, "families: {nobody: 0}");
  EXPECT_THAT(inspect("--collection layout:xla:random --fold-file " + file).output,
              HasSubstr("no line covers"));
}

TEST(InspectFolds, WarnsOfAFileThatSplitsAFamily) {
  const TempDir folder;
  const std::string file = (folder / "folds.yaml").string();
  const std::string npz = (folder / "npz").string(), shards = (folder / "shards").string();
  ASSERT_EQ(run_program("synth " + npz +
                        " --preset tiny --graphs 20,1,1 --configs 4 "
                        "--collections tile:xla && " +
                        program().string() + " convert " + npz + " " + shards)
                .exit_code,
            0);
  const std::string inspect_them = "inspect " + shards + " --collection tile:xla ";
  const Outcome written = run_program(inspect_them + "--folds 2 --json 2>/dev/null");
  std::string text = "graphs:\n", family;
  std::map<std::string, int> seen;
  const auto folds = nlohmann::json::parse(written.output);
  for (const auto& graph : folds.at(0).at("graphs")) {
    const std::string own = graph.at("family");
    if (++seen[own] == 2 && family.empty()) family = own;
    text += fmt::format("  '{}': {}\n", graph.at("name").get<std::string>(),
                        own == family && seen[own] == 2 ? 1 : 0);
  }
  ASSERT_NE(family, "");
  write_file_atomically(file, text);
  EXPECT_THAT(run_program(inspect_them + "--fold-file " + file + " 2>&1").output,
              HasSubstr(file + " splits model families over several folds: " + family + ";"));
}

TEST(Inspect, WrongUsageIsExitCode2) {
  for (const std::string& arguments : {std::string(), std::string("no-such-folder")})
    EXPECT_FALSE(output_of(run_program("inspect " + arguments + " 2>&1"), 2).empty()) << arguments;
  EXPECT_THAT(run_program("inspect no-such-folder 2>&1").output, HasSubstr("no-such-folder"));
}

class DryRun : public FolderTest {
 protected:
  DryRun() : file_((folder_ / "tiny.yaml").string()) {
    std::ofstream(file_) << tiny_experiment().resolved_yaml;
  }
  const std::string file_;
};

TEST(Inspect, NeedsNoLibTorch) {
  const TempDir folder;
  std::filesystem::copy_file(program(), folder / "tpudist");
  const std::string alone = (folder / "tpudist").string() + " inspect ";
  EXPECT_EQ(std::system((alone + tiny_shards().string() + " >/dev/null 2>&1").c_str()), 0);
}

TEST_F(DryRun, SaysWhatIsTaken) {
  const auto [exit_code, text] = run_program("train --dry-run " + file_ + " 2>&1");
  EXPECT_EQ(exit_code, 0);
  EXPECT_THAT(
      text, AllOf(HasSubstr(" of 9 units of the first 3 steps refined"), HasSubstr("\n  taken ")));
}

TEST_F(DryRun, PlansForRanksThatDoNotRun) {
  const auto [exit_code, text] = run_program("train --dry-run --ranks 3 " + file_ + " 2>&1");
  EXPECT_EQ(exit_code, 0) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("work of 3 ranks"), HasSubstr("\n  rank 2 "),
                          HasSubstr("\n  balance ")));
  EXPECT_EQ(run_program("train --ranks 3 " + file_ + " 2>&1").exit_code, 2);
}

TEST_F(DryRun, DryRunComparesNumbersOfRanks) {
  const auto [exit_code, text] =
      run_program("train --dry-run --ranks 4,1,2 --link 2,10 " + file_ + " train.steps=3 2>&1");
  EXPECT_EQ(exit_code, 0) << text;
  EXPECT_THAT(text, AllOf(ContainsRegex("\n +1 .*\n +2 .*\n +4 .* [0-9]+ % "),
                          HasSubstr("2 us each, 10 GB/s for each rank (--link)"),
                          HasSubstr("with an efficiency of 0.8")));
}

TEST_F(DryRun, WrongNumbersOfRanksAreExitCode2) {
  for (const std::string wrong :
       {"--ranks 0", "--ranks=-1", "--ranks 1,x", "--ranks 1.5", "--ranks 2,4,2", "--ranks 100000",
        "--ranks ''", "--ranks 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "--link 1,2",
        "--ranks 2 --link 1", "--ranks 2 --link 0,1"}) {
    const Outcome refused = run_program("train --dry-run " + wrong + " " + file_ + " 2>&1");
    EXPECT_EQ(refused.exit_code, 2) << wrong << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("--")) << wrong;
  }
  EXPECT_THAT(run_program("train --dry-run --ranks 2,4,2 " + file_ + " 2>&1").output,
              HasSubstr("--ranks: 2 is given twice"));
}

TEST_F(DryRun, SaysWhatEvaluationsCost) {
  const auto dry = [&](const std::string& overrides) {
    return run_program("train --dry-run " + file_ + " dist.device=cpu " + overrides + " 2>&1")
        .output;
  };
  const std::string all = dry("train.steps=6 train.evaluate_every=2 train.evaluate_rows=10");
  EXPECT_THAT(
      all, AllOf(HasSubstr("\n  every 2 "), HasSubstr("\n  at the end "),
                 HasSubstr(" GFLOP, as much as "), ContainsRegex("\n  together     about [0-9]")));
  EXPECT_THAT(dry("train.last_evaluation=none"), HasSubstr("\n  at the end   none"));
}

}  // namespace
}  // namespace tpudist::test
