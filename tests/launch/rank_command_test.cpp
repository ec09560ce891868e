#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/launch/tiny_folder.hpp"
#include "tests/results/scores/system_case.hpp"

namespace tpudist::test {
namespace {

// A run, and the sources of a test graph and a validation graph.
class RankCommand : public TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=3", "train.last_evaluation=none"});
    train("run");
  }
  static std::filesystem::path source_of(const std::string& split) {
    const auto folder = tiny_shards().parent_path() / "npz/layout/xla/random" / split;
    return std::filesystem::directory_iterator(folder)->path();
  }

  const std::filesystem::path test_ = source_of("test"), valid_ = source_of("valid");
};

TEST_F(RankCommand, RanksAnNpzFileAsPredictRanksItsShards) {
  ASSERT_EQ(call("predict run --split test --csv out.csv").exit_code, 0);
  const std::vector<int> row =
      submission_row(*folder_ / "out.csv", "layout:xla:random:" + test_.stem().string());
  ASSERT_FALSE(row.empty());
  const auto json = nlohmann::json::parse(
      output_of(call("rank " + test_.string() + " --run run --top 0 --json --quiet")));
  // Equal configurations have equal scores, so that the submission lists them by number among those
  // of that score.
  std::vector<int> order;
  for (const int config : row) {
    for (const auto& entry : json.at("ranking"))
      if (entry.at("config") == config) order.push_back(config);
  }
  std::vector<int> ranking;
  for (const auto& entry : json.at("ranking")) ranking.push_back(entry.at("config"));
  EXPECT_EQ(ranking, order);
  EXPECT_EQ(json.at("configs"), row.size());
  EXPECT_TRUE(json.at("kendall_tau").is_null());
  EXPECT_EQ(json.at("members").size(), 2u);
}

// Runs that failed are not ranked, and the others keep their numbers.
// Standard error, with its warnings, is no part of the output.
nlohmann::json ranking_of(const std::filesystem::path& folder, const std::string& arguments) {
  return nlohmann::json::parse(
      output_of(run_program("rank " + arguments + " --run run --top 0 --json 2> /dev/null",
                            "cd " + folder.string() + " && ")));
}

TEST_F(RankCommand, RanksATuningFile) {
  const std::string program = module("m", {computation("main", 1, 2,
                                                       {{"p", "parameter", 1, {}, {}, {4, 6}, {}},
                                                        {"r", "reshape", 2, {1}, {}, {24}, {}}})});
  std::ofstream(*folder_ / "m.pb", std::ios::binary) << tuned(program,
                                                              {{70, true, false, {{{0}, {0, 1}}}},
                                                               {60, false, true, {{{0}, {1, 0}}}},
                                                               {50, false, false, {{{0}, {1, 0}}}}},
                                                              {1}, false);
  const auto json = ranking_of(folder_->path(), "m.pb");
  std::set<int> configs;
  for (const auto& entry : json.at("ranking")) configs.insert(entry.at("config").get<int>());
  EXPECT_THAT(configs, ElementsAre(0, 2));
  EXPECT_THAT(call("rank m.pb --module other --run run").output,
              HasSubstr("other is none of its 1"));
  // Its content says what it is.
  std::filesystem::copy(*folder_ / "m.pb", *folder_ / "m.tuning");
  EXPECT_EQ(ranking_of(folder_->path(), "m.tuning").at("ranking"), json.at("ranking"));
}

TEST_F(RankCommand, RanksConfigurationsThatItMakes) {
  const std::string before = (jax_modules() / "layouts_before").string();
  const std::string assigned = " --default " + (jax_modules() / "layouts_after.pb").string();
  // Groups of 8, 9, 2 and 2 states: the default and 7 + 8 + 1 + 1 neighbours.
  const auto near = ranking_of(folder_->path(), before + ".pb --configs neighbours" + assigned);
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
  const auto own = ranking_of(folder_->path(), before + ".pb --configs own.json" + assigned);
  ASSERT_EQ(own["ranking"].size(), random["ranking"].size());
  for (std::size_t k = 0; k < own["ranking"].size(); ++k) {
    EXPECT_EQ(own["ranking"][k]["score"], random["ranking"][k]["score"]) << k;
    EXPECT_EQ(own["ranking"][k]["layouts"], random["ranking"][k]["layouts"]) << k;
  }
  EXPECT_THAT(call("rank " + before + ".pb --configs random:9999 --run run" + assigned).output,
              HasSubstr("random:9999: the module has 288 configurations, all are taken"));
  EXPECT_THAT(call("rank " + before + ".pb --configs neighbours --run run" + assigned).output,
              HasSubstr(" in place of the default layouts"));
}

TEST_F(RankCommand, PrintsAConfigurationToApply) {
  const std::string before = (jax_modules() / "layouts_before.pb").string(),
                    rank = "rank " + before + " --configs random:40:7 --run run ";
  const auto output = [&](const std::string& form, const nlohmann::json& entry) {
    return output_of(run_program(
        fmt::format("{} --apply {} --apply-rank {} 2> /dev/null", rank, form, entry["rank"].dump()),
        "cd " + folder_->path().string() + " && "));
  };
  const auto list = ranking_of(folder_->path(), before + " --configs random:40:7").at("ranking");
  ASSERT_EQ(list.size(), 40u);
  const auto standard =
      *std::ranges::find_if(list, [](const auto& entry) { return entry.contains("default"); });
  // The first one with another convolution than the default's.
  const auto other = *std::ranges::find_if(list, [&](const auto& entry) {
    return entry["layouts"]["conv_general_dilated.2"] !=
           standard["layouts"]["conv_general_dilated.2"];
  });
  const std::string title = fmt::format(
      "# layouts_before.pb: configuration {}, {} of 40 by 2 members\n", other["config"].dump(),
      other["rank"] == 1 ? "the fastest" : "rank " + other["rank"].dump());
  const std::string python = output("jax", other), text = output("text", other);
  EXPECT_THAT(python,
              AllOf(StartsWith(title), ContainsRegex("\n# [0-9]+ of [0-9]+ changes? can be"),
                    HasSubstr("\nfrom jax.experimental.layout import Layout, with_layout"),
                    HasSubstr("\ndef conv_general_dilated_2(operation, a, b):\n")));
  EXPECT_THAT(text, AllOf(StartsWith(title),
                          ContainsRegex("\nnodes \\{  # conv_general_dilated.2: convolution[^\n]*, "
                                        "not the default\n")));
  std::size_t nodes = 0;
  for (std::size_t at = 0; (at = text.find("nodes {", at)) != std::string::npos; ++at) ++nodes;
  EXPECT_EQ(nodes, other.at("layouts").size());
  EXPECT_THAT(output("jax", standard),
              HasSubstr("\n# no layout differs from the default: nothing"));
  EXPECT_THAT(output("text", standard), Not(HasSubstr("not the default")));
  EXPECT_THAT(output_of(call(rank + "--apply jax --apply-rank 41"), 2),
              HasSubstr("--apply-rank 41: the list has 40 distinct configurations"));
  EXPECT_EQ(call(rank + "--apply jax --apply-rank 0").exit_code, 2);
  EXPECT_EQ(call(rank + "--apply-rank 2").exit_code, 2);
  EXPECT_EQ(call(rank + "--apply jax --json").exit_code, 2);
  EXPECT_EQ(call(rank + "--apply xla").exit_code, 2);
  EXPECT_EQ(call("rank " + test_.string() + " --run run --apply jax").exit_code, 2);
}

TEST_F(RankCommand, MarksTheDefaultAndTellsTheGainOverIt) {
  const auto first = ranking_of(folder_->path(), test_.string());
  EXPECT_EQ(first["default"]["config"], 0);
  EXPECT_EQ(first["default"]["gain"]["mean"], 0);
  EXPECT_TRUE(first["default"]["best_is_better"].is_boolean());
  EXPECT_EQ(std::ranges::count_if(first["ranking"],
                                  [](const auto& entry) { return entry.contains("default"); }),
            1);
  // Any other one, also beyond the last that is listed.
  const auto& last = first["ranking"].back();
  const std::string rank = "rank " + test_.string() + " --run run --quiet --top 1",
                    number = last["equal_configs"].back().dump();
  const auto other = ranking_of(folder_->path(), test_.string() + " --default " + number);
  EXPECT_EQ(other["default"]["rank"], last["rank"]);
  EXPECT_GT(other["ranking"][0]["gain"]["mean"], 0);
  EXPECT_THAT(output_of(call(rank + " --default " + number)),
              AllOf(ContainsRegex("\n +" + last["rank"].dump() + " [^\n]*  default\n"),
                    HasSubstr("predicted gain of the best over the default, configuration " +
                              last["config"].dump() + ": "),
                    Not(HasSubstr("--default N names another"))));
  EXPECT_THAT(call(rank).output, HasSubstr("(--default N names another)"));
  const std::string before = (jax_modules() / "layouts_before.pb").string();
  std::ofstream(*folder_ / "without.json") << R"([{"dot_general.3": [[0,1]]}])";
  EXPECT_THAT(output_of(call("rank " + before + " --configs without.json --run run")),
              HasSubstr("without.json lacks the default layouts; add an empty entry {} to see"));
  EXPECT_THAT(output_of(call(rank + " --default 100000"), 2),
              HasSubstr("test/" + test_.filename().string() + " has no configuration of this"));
  for (const char* no_number : {"tiny.yaml", "1.5", "x"})
    EXPECT_THAT(output_of(call(rank + " --default " + no_number), 2),
                HasSubstr("is no number of a configuration"));
  EXPECT_THAT(output_of(call("rank " + before + " --configs default --run run --default 3"), 2),
              HasSubstr("3 is no file: with --configs give the same program after layout"));
}

TEST_F(RankCommand, SaysHowManyToMeasure) {
  const std::string rank = "rank " + test_.string() + " --run ";
  EXPECT_THAT(output_of(call(rank + "run --quiet")),
              HasSubstr("cannot say how many to measure: run has no predictions"));
  train("predicted", "predictions.rows=all");
  EXPECT_THAT(
      output_of(call(rank + "predicted --quiet --confidence 99%")),
      ContainsRegex("how many to measure: 99 % confidence needs unseen graphs of 99 families; "
                    "these runs have [0-9]+\n"));
  EXPECT_THAT(output_of(call(rank + "predicted --quiet --within 5% --confidence 50%")),
              ContainsRegex("measure (all|the first) [0-9]+: with 50 % confidence the best of them "
                            "is within 5 % of the best configuration \\(from [0-9]+ families"));
  const auto json = nlohmann::json::parse(
      output_of(run_program(rank + "predicted --json --within 0% --confidence '50 %' 2> /dev/null",
                            "cd " + folder_->path().string() + " && ")));
  EXPECT_EQ(json["advice"]["within"], 0);
  EXPECT_EQ(json["advice"]["confidence"], 0.5);
  EXPECT_GT(json["advice"]["count"], 0);
  for (const std::string option :
       {"--within 2", "--within 100%", "--within -1%", "--within nan%", "--within %",
        "--confidence 0%", "--confidence 0.9", "--confidence 100%", "--confidence inf%"})
    EXPECT_THAT(output_of(call(rank + "run " + option), 2), HasSubstr("is no percentage below 100"))
        << option;
}

// Times in the form of --json put measured configurations where they belong.
TEST_F(RankCommand, TakesMeasurementsInItsOwnForm) {
  auto list = ranking_of(folder_->path(), test_.string());
  auto& entries = list["ranking"];
  ASSERT_GT(entries.size(), 12u);
  // The model ranks these the wrong way round. One is measured twice, another by an equal number.
  for (int k = 0; k < 6; ++k) entries[k][k % 2 ? "time" : "runtime_ns"] = 2000 - 100 * k;
  entries.push_back({{"config", entries[5]["equal_configs"].back()}, {"time", 1500}});
  std::ofstream(*folder_ / "times.json") << list;
  const std::string measured = test_.string() + " --measured times.json --next 3";
  const auto found = ranking_of(folder_->path(), measured);
  EXPECT_EQ(found["measured"]["configs"], 6);
  EXPECT_EQ(found["measured"]["not_listed"], 0);
  EXPECT_NEAR(found["measured"]["kendall_tau"].get<double>(), -1, 1e-9);
  ASSERT_EQ(found["measured"]["next"].size(), 3u);
  for (const auto& next : found["measured"]["next"]) EXPECT_FALSE(next.contains("time"));
  std::vector<int> order, expected;
  for (const auto& entry : found["ranking"])
    if (entry.contains("time")) order.push_back(entry["config"]);
  for (int k = 5; k >= 0; --k) expected.push_back(entries[k]["config"]);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(found["ranking"].size(), entries.size() - 1);
  EXPECT_THAT(output_of(call("rank " + measured + " --run run --quiet")),
              AllOf(ContainsRegex("faster +measured\n"), HasSubstr("measured 6 of "),
                    HasSubstr("; the model ranks them with Kendall tau "
                              "-1.0000, corrected "),
                    ContainsRegex("\nnext to measure:( [0-9]+){3}\n"),
                    Not(HasSubstr("how many to measure"))));
  EXPECT_THAT(output_of(call("rank " + test_.string() +
                             " --measured times.json --next 0 --run run --quiet")),
              AllOf(HasSubstr("measured 6 of "), Not(HasSubstr("next to measure"))));
  // The list alone, and fewer than three: the order stays.
  nlohmann::json few = {entries[0], entries[1]};
  few.push_back({{"config", 1'000'000}, {"time", 5}});
  few.push_back({{"config", entries[2]["config"]}, {"time", -5}});
  few.push_back({{"config", entries[3]["config"]}});
  std::ofstream(*folder_ / "few.json") << few;
  EXPECT_THAT(output_of(call("rank " + test_.string() + " --measured few.json --run run --quiet")),
              HasSubstr("; left out: 1 measurement that the list lacks; left out: 1 measurement "
                        "without a time above 0; the order stays: it takes three measured"));
  EXPECT_EQ(
      ranking_of(folder_->path(), test_.string() + " --measured few.json")["ranking"][0]["config"],
      entries[0]["config"]);
}

TEST_F(RankCommand, TakesMeasurementsOfMadeLayouts) {
  const std::string file =
      (jax_modules() / "layouts_before.pb").string() + " --configs random:40:7";
  auto list = ranking_of(folder_->path(), file)["ranking"];
  for (int k = 0; k < 10; ++k) list[39 - k]["time"] = 10 + k;
  for (auto& entry : list) entry.erase("config");
  std::ofstream(*folder_ / "layouts.json") << list;
  const auto found = ranking_of(folder_->path(), file + " --measured layouts.json");
  EXPECT_EQ(found["measured"]["configs"], 10);
  EXPECT_EQ(found["measured"]["next"].size(), 10u);
  for (const auto& entry : found["ranking"]) {
    if (entry.contains("time") && entry["time"] == 10)
      EXPECT_EQ(entry["layouts"], list[39]["layouts"]);
  }
}

// All of a file's own run times: nothing is left to measure.
TEST_F(RankCommand, TakesTheRunTimesOfAnNpzOrATuningFile) {
  const auto found =
      ranking_of(folder_->path(), valid_.string() + " --measured " + valid_.string());
  EXPECT_EQ(found["measured"]["configs"], found["distinct_configs"]);
  EXPECT_TRUE(found["measured"]["next"].empty());
  double before = 0;
  for (const auto& entry : found["ranking"]) {
    EXPECT_GE(entry["time"], before);
    before = entry["time"];
  }
  EXPECT_THAT(output_of(call("rank " + valid_.string() + " --run run --quiet --measured " +
                             valid_.string())),
              HasSubstr("next to measure: none is left"));
  const std::string program = module("t", {computation("main", 1, 2,
                                                       {{"p", "parameter", 1, {}, {}, {4, 6}, {}},
                                                        {"r", "reshape", 2, {1}, {}, {24}, {}}})});
  std::ofstream(*folder_ / "t.pb", std::ios::binary)
      << tuned(program, {{70, true, false, {{{0}, {0, 1}}}}, {50, false, false, {{{0}, {1, 0}}}}},
               {1}, false);
  EXPECT_THAT(output_of(call("rank t.pb --measured t.pb --run run --quiet")),
              HasSubstr("measured 2 of 2 configurations; the order stays: it takes three"));
  // The same program with its layouts made.
  const auto made = ranking_of(folder_->path(), "t.pb --configs neighbours --measured t.pb");
  EXPECT_EQ(made["measured"]["configs"], 2);
}

TEST_F(RankCommand, RefusesMeasurementsThatItCannotRead) {
  const auto refusal = [&](const std::string& text) {
    std::ofstream(*folder_ / "bad.json") << text;
    const std::string said =
        output_of(call("rank " + test_.string() + " --run run --quiet --measured bad.json"), 3);
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_THAT(said, HasSubstr("tpudist: error: bad.json: ")) << text;
    return said;
  };
  refusal("");
  refusal("config,time\n1,2\n");
  EXPECT_THAT(refusal("{"), HasSubstr("is no JSON: parse error at line 1"));
  EXPECT_THAT(refusal("[{\"config\": 1, \"time\": NaN}]"), HasSubstr("is no JSON"));
  EXPECT_THAT(refusal("[{\"config\": 1, \"time\": 1e999}]"), HasSubstr("is no JSON"));
  EXPECT_THAT(refusal("{}"), HasSubstr("has no list of measured configurations"));
  EXPECT_THAT(refusal("{\"ranking\": 5}"), HasSubstr("has no list of measured configurations"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("has no list"));
  EXPECT_THAT(refusal("[5]"), HasSubstr("an entry of its list is no object"));
  EXPECT_THAT(refusal("[{\"time\": 5}]"), HasSubstr("a time, but neither config nor layouts"));
  EXPECT_THAT(refusal("[{\"time\": 5, \"config\": 1.5}]"), HasSubstr("neither config nor layouts"));
  const auto of_file = [&](const std::string& file, int code) {
    return output_of(call("rank " + valid_.string() + " --run run --quiet --measured " + file),
                     code);
  };
  EXPECT_THAT(of_file("none.json", 2), HasSubstr("none.json"));
  EXPECT_THAT(of_file(".", 2), HasSubstr("--measured"));
  EXPECT_THAT(of_file(test_.string(), 3), HasSubstr(test_.string()));
  EXPECT_THAT(of_file(source_of("train").string(), 3), HasSubstr("is of another program: "));
  EXPECT_THAT(
      output_of(call("rank " + test_.string() + " --run run --quiet --measured " + test_.string()),
                3),
      HasSubstr(test_.string() + ": has no run times"));
}

TEST_F(RankCommand, WarnsOfAModuleThatIsUnlikeTheTrainingGraphs) {
  const std::string file = (jax_modules() / "layouts_before.pb").string();
  EXPECT_THAT(output_of(call("rank " + file + " --configs default --run run")),
              HasSubstr("layouts_before.pb lies outside of what run was trained"));
  // A graph of the training split does not.
  EXPECT_THAT(call("rank " + source_of("train").string() + " --run run").output,
              Not(HasSubstr("lies outside")));
  EXPECT_THAT(output_of(call("inspect " + file + " --run run")),
              AllOf(HasSubstr("\nrun was trained on "),
                    HasSubstr(" of 140 node features leave their range")));
  const Outcome json = run_program("inspect " + file + " --run run --json 2> /dev/null",
                                   "cd " + folder_->path().string() + " && ");
  const auto training = nlohmann::json::parse(json.output).at("modules").at(0).at("training");
  EXPECT_GT(training.at("features").size(), 0u);
  EXPECT_EQ(training.at("features").at(0).at("seen").size(), 2u);
  // Damage is told and ranks all the same; a run of an older version says nothing.
  std::filesystem::copy(*folder_ / "run", *folder_ / "old",
                        std::filesystem::copy_options::recursive);
  std::ofstream(*folder_ / "old/seen_graphs.json") << "{";
  EXPECT_THAT(output_of(call("rank " + file + " --configs default --run old")),
              HasSubstr("old/seen_graphs.json: is damaged"));
  EXPECT_EQ(call("inspect " + file + " --run old").exit_code, 3);
  std::filesystem::remove(*folder_ / "old/seen_graphs.json");
  EXPECT_THAT(call("rank " + file + " --configs default --run old").output,
              Not(HasSubstr("seen_graphs")));
  EXPECT_THAT(output_of(call("inspect " + file + " --run old"), 2),
              HasSubstr("old: has no seen_graphs.json"));
  EXPECT_EQ(call("inspect " + file + " --run .").exit_code, 2);
}

TEST_F(RankCommand, RefusesConfigurationsThatCannotBeMade) {
  const std::string before = (jax_modules() / "layouts_before.pb").string();
  const auto refusal = [&](const std::string& file, const std::string& configs, int code) {
    const Outcome outcome = call("rank " + file + " --run run --quiet --configs " + configs);
    EXPECT_EQ(outcome.exit_code, code) << outcome.output;
    return outcome.output;
  };
  EXPECT_THAT(refusal(before, "random:0", 2), HasSubstr("give random:N or random:N:SEED"));
  EXPECT_THAT(refusal(before, "random:4:", 2), HasSubstr("give random:N or random:N:SEED"));
  EXPECT_THAT(refusal(before, "nowhere.json", 2), HasSubstr("nowhere.json: is no file"));
  EXPECT_THAT(refusal(before, before, 3), HasSubstr("is no JSON: parse error at line "));
  EXPECT_THAT(refusal(before, "neigbours", 2),
              HasSubstr("or a JSON file; did you mean neighbours?"));
  EXPECT_THAT(refusal(before, "randm:9", 2), HasSubstr("or a JSON file; did you mean random:N?"));
  EXPECT_THAT(refusal(test_.string(), "default", 3),
              HasSubstr("is a zip file: of a raw NPZ, convert it first (`tpudist convert`)"));
  EXPECT_THAT(refusal((jax_modules() / "sort.pb").string(), "default", 3),
              HasSubstr("no convolution, dot or reshape"));
  EXPECT_EQ(call("rank " + before + " --run run --default " + before).exit_code, 2);
}

TEST_F(RankCommand, AsksForConfigurationsWhereTheFileHasNone) {
  const std::string before = (jax_modules() / "layouts_before").string();
  std::filesystem::copy(before + ".pb", *folder_ / "dump.hlo.proto");
  for (const std::string& file : {before + ".pb", std::string("dump.hlo.proto")}) {
    EXPECT_THAT(output_of(call("rank " + file + " --run run"), 3),
                HasSubstr("this file has a program but no configurations: add "
                          "--configs neighbours or random:1000"))
        << file;
  }
  std::ofstream(*folder_ / "m.mlir") << "module @jit_f {}";
  EXPECT_THAT(call("rank m.mlir --run run").output, HasSubstr("m.mlir: is MLIR: dump HLO"));
  EXPECT_THAT(call("rank tiny.yaml --run run").output, HasSubstr("tiny.yaml: is damaged, or none"));
}

TEST_F(RankCommand, KeepsNamesInTheirLines) {
  std::filesystem::copy(test_, *folder_ / "a\nb.npz");
  train("'r\ns'");
  EXPECT_THAT(output_of(call("rank 'a\nb.npz' --run 'r\ns' --quiet")),
              AllOf(HasSubstr("a?b: "), HasSubstr("(z_score): r?s step 3")));
  EXPECT_THAT(call("evaluate 'r\ns' --quiet").output, HasSubstr("r?s, step 3"));
}

TEST_F(RankCommand, ListsTheBestAndTellsTauWhereThereAreRunTimes) {
  EXPECT_THAT(
      output_of(call("rank " + valid_.string() + " --run run --top 3")),
      AllOf(HasSubstr("ranked by 2 of 2 members (z_score): run step 3"),
            ContainsRegex("\n +3 +[0-9]+ +[0-9]+ "), Not(ContainsRegex("\n +4 +[0-9]+ +[0-9]+ ")),
            HasSubstr("Kendall tau with the run times of the file")));
  EXPECT_THAT(call("rank " + test_.string() + " --run run").output, Not(HasSubstr("Kendall tau")));
}

// The runs of that sweep have no checkpoints.
TEST_F(RankCommand, TakesAVariantOfASweepAsPredictDoes) {
  write_system_sweep(*folder_ / "rates");
  for (const std::string& command :
       {"rank " + test_.string() + " --run rates:0", std::string("predict rates:0 --csv x.csv")})
    EXPECT_THAT(call(command).output, HasSubstr("rates/runs/")) << command;
  EXPECT_THAT(call("rank " + test_.string() + " --run runn").output, HasSubstr("mean run?"));
}

TEST_F(RankCommand, TellsDamageAndMistakesInOneLine) {
  std::ofstream(*folder_ / "bad.npz") << "no zip";
  EXPECT_THAT(output_of(call("rank bad.npz --run run"), 3), HasSubstr("tpudist: error: bad.npz"));
  EXPECT_EQ(call("rank " + test_.string() + " --run run --combine median").exit_code, 2);
  for (const std::string value : {"0", "-1", "inf", "nan"}) {
    EXPECT_EQ(output_of(call("rank " + test_.string() +
                             " --run run --combine softmax --temperature " + value),
                        2),
              "tpudist: error: --temperature " + value +
                  " cannot scale scores; give a number above 0, such as 1\n");
  }
  EXPECT_EQ(call("rank " + test_.string() + "").exit_code, 2);
  EXPECT_EQ(call("rank " + test_.string() + " --run .").exit_code, 2);
  EXPECT_EQ(call("rank " + test_.string() + " --run run --checkpoint 9").exit_code, 2);
}

TEST_F(RankCommand, SaysThatAPipeCannotBeSearched) {
  EXPECT_THAT(
      output_of(run_program("rank /dev/stdin --run run --quiet 2>&1",
                            "cd " + folder_->path().string() + " && cat " + test_.string() + " | "),
                3),
      HasSubstr("tpudist: error: /dev/stdin: is a pipe or a terminal"));
  output_of(call("rank /dev/stdin --run run --quiet < " + test_.string()));
}

}  // namespace
}  // namespace tpudist::test
