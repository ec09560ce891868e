#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/launch/mpi_program.hpp"
#include "tests/launch/tiny_folder.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

// A run, a module of HLO and the sources of graphs. Searches are short.
class SearchCommand : public TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=3", "train.last_evaluation=none"});
    train("run");
  }
  static fs::path source_of(const std::string& split,
                            const std::string& collection = "layout/xla/random") {
    return fs::directory_iterator(tiny_shards().parent_path() / "npz" / collection / split)->path();
  }
  // Standard error, with its warnings, is no part of the output.
  static std::string printed(const std::string& arguments) {
    return output_of(
        run_program(arguments + " 2> /dev/null", "cd " + folder_->path().string() + " && "));
  }
  static std::string search(const std::string& file, const std::string& more = "") {
    return "search " + file + " --run run --evaluations 200 --starts 2 --propose 4 " + more;
  }
  static nlohmann::json found(const std::string& file, const std::string& more = "") {
    return nlohmann::json::parse(printed(search(file, "--json " + more)));
  }

  const std::string before_ = (jax_modules() / "layouts_before.pb").string(),
                    default_ = " --default " + (jax_modules() / "layouts_after.pb").string(),
                    test_ = source_of("test").string(), valid_ = source_of("valid").string();
};

// What is printed can be given to `rank`.
TEST_F(SearchCommand, ProposesLayoutsOfAModuleThatRankTakes) {
  const auto json = found(before_, default_);
  EXPECT_EQ(json["configs"], 288);
  EXPECT_LE(json["evaluations"], 200);
  EXPECT_EQ(json["members"].size(), 2u);
  const auto& list = json["ranking"];
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0]["default"], true);
  EXPECT_EQ(list[0]["gain"], 0);
  for (std::size_t k = 1; k < list.size(); ++k) {
    EXPECT_EQ(list[k]["rank"], k);
    EXPECT_FALSE(list[k].contains("default"));
    EXPECT_GE(list[k]["changed_groups"], 1);
    EXPECT_EQ(list[k]["layouts"].size(), 6u);
    if (k > 1) EXPECT_GE(list[k]["estimate"], list[k - 1]["estimate"]);
  }
  std::ofstream(*folder_ / "found.json") << json;
  const auto ranked = nlohmann::json::parse(printed("rank " + before_ + " --configs found.json" +
                                                    default_ + " --run run --top 0 --json"));
  ASSERT_EQ(ranked["ranking"].size(), 5u);
  for (const auto& entry : ranked["ranking"]) {
    const auto& own = list.at(entry["config"].get<std::size_t>());
    EXPECT_EQ(own["layouts"], entry["layouts"]);
  }
  EXPECT_EQ(ranked["default"]["config"], 0);
}

TEST_F(SearchCommand, PrintsProposalsAndTheDefault) {
  const std::string text = printed(search(test_));
  EXPECT_THAT(text,
              AllOf(HasSubstr(" of operations that change together, "),
                    HasSubstr("searched by 2 of 2 members: run step 3\n"),
                    HasSubstr("\n  rank  estimate      gain  faster  groups\n"),
                    HasSubstr("200 evaluations from 2 starts; pessimism 0.5 (too few families"),
                    ContainsRegex("\n +4 [^\n]+\n +- [^\n]+ 0.0000 +0 % +0\nthe last row is"),
                    Not(HasSubstr("broken"))));
  const std::string free = printed(search(test_, "--free"));
  EXPECT_THAT(free, AllOf(HasSubstr("(left by --free)"), ContainsRegex("groups +broken\n"),
                          HasSubstr("trust these scores less")));
  const auto broken = found(before_, "--free")["ranking"];
  EXPECT_EQ(broken[0]["broken"], 0);
  EXPECT_TRUE(std::ranges::any_of(broken, [](const auto& entry) { return entry["broken"] > 0; }));
  EXPECT_EQ(found(test_), found(test_));
  EXPECT_NE(found(test_, "--seed 2")["ranking"], found(test_)["ranking"]);
}

TEST_F(SearchCommand, TakesAnyConfigurationOfAnNpzAsTheDefault) {
  const auto first = found(test_), other = found(test_, "--default 3");
  EXPECT_NE(other["ranking"][0]["layouts"], first["ranking"][0]["layouts"]);
  EXPECT_THAT(output_of(call(search(test_, "--default 100000")), 2),
              HasSubstr("has no configuration of this number"));
  for (const char* none : {"nowhere.pb", "1.5"})
    EXPECT_THAT(output_of(call(search(test_, std::string("--default ") + none)), 2),
                HasSubstr("is neither the program after layout assignment nor the number"));
  EXPECT_THAT(output_of(call(search(before_, "--default 3")), 2), HasSubstr("is neither"));
}

TEST_F(SearchCommand, PrintsAProposalToApply) {
  const auto list = found(before_)["ranking"];
  const std::string jax = printed(search(before_, "--apply jax")),
                    text = printed(search(before_, "--apply text --apply-rank 4"));
  EXPECT_THAT(jax, AllOf(StartsWith("# layouts_before.pb: proposal 1 of 4\n"),
                         ContainsRegex("\n# [0-9]+ of [0-9]+ changes? can be said in JAX")));
  EXPECT_THAT(text, AllOf(StartsWith("# layouts_before.pb: proposal 4 of 4\n"),
                          HasSubstr(", not the default\n")));
  EXPECT_THAT(output_of(call(search(before_, "--apply jax --apply-rank 5")), 2),
              HasSubstr("--apply-rank 5: the search proposes 4 configurations"));
  EXPECT_EQ(call(search(before_, "--apply-rank 2")).exit_code, 2);
  EXPECT_EQ(call(search(before_, "--apply jax --json")).exit_code, 2);
}

TEST_F(SearchCommand, SynthKnowsTheTrueTimesOfProposals) {
  std::ofstream(*folder_ / "found.json") << found(test_);
  EXPECT_THAT(printed("synth --times found.json"),
              ContainsRegex("^ +rank +time +than default\n"
                            " default +[0-9.]+ us +0.00 %\n"
                            "( +[1-4] +[0-9.]+ us +-?[0-9.]+ %\n){4}$"));
  std::ofstream(*folder_ / "hlo.json") << found(before_);
  const auto refusal = [&](const std::string& file, int code) {
    const std::string said = output_of(call("synth --times " + file), code);
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    return said;
  };
  EXPECT_THAT(refusal("hlo.json", 3), HasSubstr("is not of an NPZ file of `tpudist synth`"));
  auto json = found(test_);
  json["file"] = "elsewhere/net.npz";
  std::ofstream(*folder_ / "elsewhere.json") << json;
  EXPECT_THAT(refusal("elsewhere.json", 2), HasSubstr("there is no synth.json two folders above"));
  json = found(test_);
  json["ranking"].erase(0);
  std::ofstream(*folder_ / "no-default.json") << json;
  EXPECT_THAT(refusal("no-default.json", 3), HasSubstr("has no default configuration"));
  for (const std::string bad : {"", "{", "[]", "{\"file\": 5}", "{\"file\": \"a\"}"}) {
    std::ofstream(*folder_ / "bad.json") << bad;
    EXPECT_THAT(refusal("bad.json", 3), HasSubstr("bad.json: is no output of `tpudist search"));
  }
  json["ranking"][0]["rank"] = "DEEP";
  std::string deep = json.dump();
  deep.replace(deep.find("\"DEEP\""), 6, std::string(200'000, '[') + std::string(200'000, ']'));
  std::ofstream(*folder_ / "deep.json") << deep;
  EXPECT_THAT(refusal("deep.json", 3), HasSubstr("deep.json: "));
  EXPECT_EQ(call("synth --times none.json").exit_code, 2);
  EXPECT_THAT(output_of(call("synth"), 2), HasSubstr("error: out is required, or --times"));
}

TEST_F(SearchCommand, RefusesWhatItCannotSearch) {
  EXPECT_EQ(call("search " + test_).exit_code, 2);
  EXPECT_THAT(output_of(call("search " + test_ + " --run run --evaluations 7"), 2),
              HasSubstr("--evaluations 7: give at least 8, one for each start"));
  for (const std::string option : {"--evaluations 0", "--starts 0", "--propose 0", "--seed -1"})
    EXPECT_EQ(call(search(test_, option)).exit_code, 2) << option;
  train("tile", "data.collection=tile:xla model.preset=latenciaga_tile");
  const std::string kernel = source_of("valid", "tile/xla").string();
  EXPECT_THAT(output_of(call("search " + kernel + " --run tile --quiet"), 2),
              HasSubstr("tile sizes need no search"));
  EXPECT_EQ(call("search " + kernel + " --run run --quiet").exit_code, 3);
  NpzFixture bad = NpzFixture::layout();
  bad.without = "node_config_feat";
  bad.write(*folder_ / "none.npz");
  EXPECT_THAT(output_of(call(search("none.npz")), 3), HasSubstr("node_config_feat"));
  bad.without.clear();
  bad.features[7] = 0.5f;
  bad.write(*folder_ / "odd.npz");
  EXPECT_THAT(output_of(call(search("odd.npz")), 3),
              HasSubstr("odd: node_config_feat has 0.5, which is no dimension of a layout"));
  EXPECT_THAT(output_of(run_program(search("/dev/stdin", "--quiet 2>&1"),
                                    "cd " + folder_->path().string() + " && cat " + test_ + " | "),
                        3),
              HasSubstr("/dev/stdin: is a pipe or a terminal"));
}

// A search that is ended says nothing rather than half of its proposals.
TEST_F(SearchCommand, WritesAllOfItsOutputOrNone) {
  for (const int signal : {SIGTERM, SIGINT}) {
    MpiProgram job("cd " + folder_->path().string() + " && exec " + program().string() +
                   " search " + before_ + default_ +
                   " --run run --evaluations 1000000 --free --json 2>&1 > cut.json");
    ASSERT_TRUE(job.wait_for("lies outside of what run was trained"));
    ASSERT_EQ(kill(job.process(), signal), 0);
    const Outcome outcome = job.finish();
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_NE(outcome.exit_code, 124) << "the search went on";
    EXPECT_EQ(read_text_file(*folder_ / "cut.json"), "");
  }
  EXPECT_THAT(output_of(run_program(search(test_, "--json --quiet 2>&1 > /dev/full"),
                                    "cd " + folder_->path().string() + " && "),
                        1),
              HasSubstr("cannot write to standard output: No space left on device"));
}

// Root may read everything, so the program runs without the right to.
TEST_F(SearchCommand, AndRankNameAFileThatTheyMayNotRead) {
  const std::string in_folder = "cd " + folder_->path().string() + " && ",
                    restricted = geteuid() == 0
                                     ? "setpriv --bounding-set -dac_override,-dac_read_search "
                                     : std::string();
  if (run_program("--version", in_folder + restricted).exit_code != 0)
    GTEST_SKIP() << "root cannot give up its right to read here (setpriv)";
  const auto run = [&](const std::string& arguments) {
    return run_program(arguments + " --quiet 2>&1", in_folder + restricted);
  };
  std::ofstream(*folder_ / "times.json") << "[]";
  fs::permissions(*folder_ / "times.json", fs::perms::none);
  for (const std::string& command :
       {"rank " + test_ + " --run run", search(test_), search(before_, default_)})
    EXPECT_EQ(output_of(run(command + " --measured times.json"), 1),
              "tpudist: error: cannot open times.json: Permission denied\n");
  fs::permissions(*folder_ / "times.json", fs::perms::owner_read);
  fs::copy_file(test_, *folder_ / "locked.npz");
  fs::permissions(*folder_ / "locked.npz", fs::perms::none);
  for (const std::string& command :
       {std::string("rank locked.npz --run run"), search("locked.npz")})
    EXPECT_THAT(output_of(run(command), 1), HasSubstr("locked.npz: Permission denied\n"));
  EXPECT_THAT(output_of(call(search(test_, "--measured .")), 2),
              HasSubstr("\".\" is a folder; give a file"));
}

}  // namespace
}  // namespace tpudist::test
