#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "scores/submission.hpp"
#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/launch/tiny_folder.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tpudist::test::Outcome;

// A run, and the sources of a test graph and a validation graph.
class RankCommand : public test::TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=3", "train.last_evaluation=none"});
    train("run");
  }
  static std::filesystem::path source_of(const std::string& split) {
    const auto folder = test::tiny_shards().parent_path() / "npz/layout/xla/random" / split;
    return std::filesystem::directory_iterator(folder)->path();
  }

  const std::filesystem::path test_ = source_of("test"), valid_ = source_of("valid");
};

TEST_F(RankCommand, RanksAnNpzFileAsPredictRanksItsShards) {
  ASSERT_EQ(call("predict run --split test --csv out.csv").exit_code, 0);
  const Submission submission = Submission::read(*folder_ / "out.csv");
  const auto* row = submission.find("layout:xla:random:" + test_.stem().string());
  ASSERT_NE(row, nullptr);
  const Outcome ranked = call("rank " + test_.string() + " --run run --top 0 --json --quiet");
  ASSERT_EQ(ranked.exit_code, 0) << ranked.output;
  const auto json = nlohmann::json::parse(ranked.output);
  // Equal configurations have equal scores, so that the submission lists them by number among those
  // of that score.
  std::vector<std::int32_t> order;
  for (const std::int32_t config : row->configs) {
    for (const auto& entry : json.at("ranking")) {
      if (entry.at("config") == config) order.push_back(config);
    }
  }
  std::vector<std::int32_t> ranking;
  for (const auto& entry : json.at("ranking")) ranking.push_back(entry.at("config"));
  EXPECT_EQ(ranking, order);
  EXPECT_EQ(json.at("configs"), row->configs.size());
  EXPECT_TRUE(json.at("kendall_tau").is_null());
  EXPECT_EQ(json.at("members").size(), 2u);
}

// Runs that failed are not ranked, and the others keep their numbers.
TEST_F(RankCommand, RanksATuningFile) {
  const std::string program =
      test::module("m", {test::computation("main", 1, 2,
                                           {{"p", "parameter", 1, {}, {}, {4, 6}, {}},
                                            {"r", "reshape", 2, {1}, {}, {24}, {}}})});
  std::ofstream(*folder_ / "m.pb", std::ios::binary)
      << test::tuned(program,
                     {{70, true, false, {{{0}, {0, 1}}}},
                      {60, false, true, {{{0}, {1, 0}}}},
                      {50, false, false, {{{0}, {1, 0}}}}},
                     {1}, false);
  const Outcome ranked = call("rank m.pb --run run --json --quiet");
  ASSERT_EQ(ranked.exit_code, 0) << ranked.output;
  const auto json = nlohmann::json::parse(ranked.output);
  std::set<int> configs;
  for (const auto& entry : json.at("ranking")) configs.insert(entry.at("config").get<int>());
  EXPECT_THAT(configs, ::testing::ElementsAre(0, 2));
  EXPECT_THAT(call("rank m.pb --module other --run run").output,
              HasSubstr("other is none of its 1"));
}

// Standard error, with its warnings, is no part of the output.
nlohmann::json ranking_of(const std::filesystem::path& folder, const std::string& arguments) {
  const Outcome ranked =
      test::run_program("rank " + arguments + " --run run --top 0 --json 2> /dev/null",
                        "cd " + folder.string() + " && ");
  EXPECT_EQ(ranked.exit_code, 0) << ranked.output;
  return nlohmann::json::parse(ranked.output);
}

TEST_F(RankCommand, RanksConfigurationsThatItMakes) {
  const std::string before = (test::jax_modules() / "layouts_before").string();
  const std::string assigned = " --default " + (test::jax_modules() / "layouts_after.txt").string();
  // Groups of 8, 9, 2 and 2 states: the default and 7 + 8 + 1 + 1 neighbours.
  const auto near = ranking_of(folder_->path(), before + ".txt --configs neighbours" + assigned);
  EXPECT_EQ(near.at("configs"), 18);
  EXPECT_EQ(near.at("ranking").at(0).at("layouts").size(), 6u);
  const auto random = ranking_of(folder_->path(), before + ".pb --configs random:40:7" + assigned);
  EXPECT_EQ(random.at("configs"), 40);
  EXPECT_EQ(ranking_of(folder_->path(), before + ".pb --configs random:40:7" + assigned)["ranking"],
            random["ranking"]);
  EXPECT_EQ(ranking_of(folder_->path(), before + ".pb --configs random:9999" + assigned)["configs"],
            288);
  EXPECT_EQ(ranking_of(folder_->path(), before + ".pb --configs default")["configs"], 1);
  // What is printed can be given, and has the same scores in the same order (z-scores are sums).
  auto list = nlohmann::json::array();
  list.get_ref<nlohmann::json::array_t&>().resize(40);
  for (const auto& entry : random["ranking"])
    list.at(entry["config"].get<std::size_t>()) = entry["layouts"];
  std::ofstream(*folder_ / "own.json") << list;
  const auto own = ranking_of(folder_->path(), before + ".txt --configs own.json" + assigned);
  ASSERT_EQ(own["ranking"].size(), random["ranking"].size());
  for (std::size_t k = 0; k < own["ranking"].size(); ++k) {
    EXPECT_EQ(own["ranking"][k]["score"], random["ranking"][k]["score"]) << k;
    EXPECT_EQ(own["ranking"][k]["layouts"], random["ranking"][k]["layouts"]) << k;
  }
  const Outcome text = call("rank " + before + ".txt --configs neighbours --run run" + assigned);
  EXPECT_THAT(text.output, HasSubstr(" in place of the default layouts"));
}

TEST_F(RankCommand, RefusesConfigurationsThatCannotBeMade) {
  const std::string before = (test::jax_modules() / "layouts_before.txt").string();
  const auto refusal = [&](const std::string& file, const std::string& configs, int code) {
    const Outcome outcome = call("rank " + file + " --run run --quiet --configs " + configs);
    EXPECT_EQ(outcome.exit_code, code) << outcome.output;
    return outcome.output;
  };
  EXPECT_THAT(refusal(before, "random:0", 2), HasSubstr("give random:N or random:N:SEED"));
  EXPECT_THAT(refusal(before, "random:4:", 2), HasSubstr("give random:N or random:N:SEED"));
  EXPECT_THAT(refusal(before, "nowhere.json", 2), HasSubstr("nowhere.json: is no file"));
  EXPECT_THAT(refusal(before, before, 3), HasSubstr("is no JSON list"));
  EXPECT_THAT(refusal(test_.string(), "default", 3), HasSubstr("is damaged, or none of HloProto"));
  EXPECT_THAT(refusal((test::jax_modules() / "sort.txt").string(), "default", 3),
              HasSubstr("no convolution, dot or reshape"));
  EXPECT_EQ(call("rank " + before + " --run run --default " + before).exit_code, 2);
}

TEST_F(RankCommand, ListsTheBestAndTellsTauWhereThereAreRunTimes) {
  const Outcome valid = call("rank " + valid_.string() + " --run run --top 3");
  EXPECT_EQ(valid.exit_code, 0) << valid.output;
  EXPECT_THAT(valid.output, HasSubstr("ranked by 2 of 2 members (z_score): run step 3"));
  EXPECT_THAT(valid.output, ::testing::ContainsRegex("\n +3 +[0-9]+ +[0-9]+ "));
  EXPECT_THAT(valid.output, Not(::testing::ContainsRegex("\n +4 +[0-9]+ +[0-9]+ ")));
  EXPECT_THAT(valid.output, HasSubstr("Kendall tau with the run times of the file"));
  EXPECT_THAT(call("rank " + test_.string() + " --run run").output, Not(HasSubstr("Kendall tau")));
}

TEST_F(RankCommand, TellsDamageAndMistakesInOneLine) {
  std::ofstream(*folder_ / "bad.npz") << "no zip";
  const Outcome bad = call("rank bad.npz --run run");
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_THAT(bad.output, HasSubstr("tpudist: error: bad.npz"));
  EXPECT_EQ(call("rank " + test_.string() + " --run run --combine median").exit_code, 2);
  for (const std::string value : {"0", "-1", "inf", "nan"}) {
    const Outcome refused =
        call("rank " + test_.string() + " --run run --combine softmax --temperature " + value);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.output, "tpudist: error: --temperature " + value +
                                  " cannot scale scores; give a number above 0, such as 1\n");
  }
  EXPECT_EQ(call("rank " + test_.string() + "").exit_code, 2);
  EXPECT_EQ(call("rank " + test_.string() + " --run .").exit_code, 2);
  EXPECT_EQ(call("rank " + test_.string() + " --run run --checkpoint 9").exit_code, 2);
}

TEST_F(RankCommand, SaysThatAPipeCannotBeSearched) {
  const Outcome piped =
      test::run_program("rank /dev/stdin --run run --quiet 2>&1",
                        "cd " + folder_->path().string() + " && cat " + test_.string() + " | ");
  EXPECT_EQ(piped.exit_code, 3);
  EXPECT_THAT(piped.output, HasSubstr("tpudist: error: /dev/stdin: is a pipe or a terminal"));
  const Outcome given = call("rank /dev/stdin --run run --quiet < " + test_.string());
  EXPECT_EQ(given.exit_code, 0) << given.output;
}

}  // namespace
}  // namespace tpudist
