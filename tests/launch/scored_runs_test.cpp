// `tpudist compare` and `tpudist report` as a user calls them.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/results/scores/system_case.hpp"

namespace tpudist::test {
namespace {

// Five runs of a good system and five of a bad one.
class CompareCommand : public CommandTest {
 protected:
  CompareCommand() {
    for (int seed = 1; seed <= 5; ++seed) {
      write_system_run(folder_ / ("a" + std::to_string(seed)), seed, 4, 3);
      write_system_run(folder_ / ("b" + std::to_string(seed)), seed, 12, 7);
    }
  }

  Outcome call(const std::string& arguments) const {
    return CommandTest::call("compare " + arguments);
  }
};

TEST_F(CompareCommand, TakesTwoFilesOfPredictions) {
  EXPECT_THAT(output_of(call("a1/predictions.h5 b1/predictions.h5")),
              HasSubstr("1 training of 2 members: a1/predictions.h5"));
}

// Each of two planned readings is judged at 0.025, so its intervals are at 97.5 %.
TEST_F(CompareCommand, JudgesPlannedLooksMoreStrictly) {
  const std::string outcome =
      output_of(call("a1 a2 a3 --with b1 b2 b3 --looks 2 --difference 0.01 --json l.json"));
  EXPECT_THAT(outcome,
              AllOf(HasSubstr("One of 2 planned looks: each is judged at p < 0.025 (0.05 / 2)"),
                    HasSubstr("97.5 % interval"), Not(HasSubstr("95 % interval")),
                    HasSubstr("in 8 of 10 cases, at p < 0.025")));
  const auto json = nlohmann::json::parse(read_text_file(folder_ / "l.json"))[0];
  EXPECT_NEAR(json.at("level").get<double>(), 0.975, 1e-12);
  // The intervals of A and of B are at this level, too.
  ASSERT_EQ(call("a1 a2 a3 --with b1 b2 b3 --json once.json").exit_code, 0);
  const auto once = nlohmann::json::parse(read_text_file(folder_ / "once.json"))[0];
  for (const char* question : {"these_graphs", "other_families"})
    EXPECT_LT(json.at("a").at(question).at("low"), once.at("a").at(question).at("low"));
  EXPECT_THAT(outcome, Not(HasSubstr("below 0.05")));
  EXPECT_NE(call("a1 b1 --looks 0").exit_code, 0);
  EXPECT_NE(call("a1 b1 --looks 101").exit_code, 0);
}

// Only intervals and verdicts are another thing with more looks.
TEST_F(CompareCommand, HasTheSamePForAnyNumberOfLooks) {
  const auto of = [&](int looks) {
    EXPECT_EQ(call(fmt::format("a1 a2 a3 a4 --with b1 b2 b3 b4 --json l.json --looks {}", looks))
                  .exit_code,
              0);
    auto json = nlohmann::json::parse(read_text_file(folder_ / "l.json"))[1];
    nlohmann::json numbers;
    for (const char* question : {"these_graphs", "other_families"}) {
      numbers.push_back(json.at(question).at("p"));
      EXPECT_TRUE(json.at(question).at("p").is_number());
    }
    for (const char* name : {"chance", "expected_regret"})
      numbers.push_back(json.at("other_families").at("next_family").at(name));
    return numbers;
  };
  const nlohmann::json once = of(1);
  EXPECT_EQ(of(2), once);
  EXPECT_EQ(of(3), once);
}

TEST_F(CompareCommand, JudgesByAMargin) {
  EXPECT_THAT(output_of(call("a1 a2 a3 a4 a5 --with b1 b2 b3 b4 b5 --margin 0.9 --json m.json")),
              StartsWith("Margin of 0.9: on these graphs A and B differ by less; on "
                         "other families A and B differ by less.\n"));
  const auto json = nlohmann::json::parse(read_text_file(folder_ / "m.json"));
  EXPECT_EQ(json[0].at("these_graphs").at("margin"), "equivalent");
  const Outcome single = call("a1 b1 --margin 0.02");
  EXPECT_THAT(single.output, AllOf(StartsWith("Margin of 0.02: on these graphs undecided; on other "
                                              "families undecided.\n"),
                                   Not(HasSubstr(" leads on "))));
  EXPECT_THAT(call("b1 b2 b3 b4 b5 --with a1 a2 a3 a4 a5 --margin 0.02").output,
              StartsWith("Margin of 0.02: on these graphs B is better than A by more; on other "
                         "families B is better than A by more.\n"));
  EXPECT_NE(call("a1 b1 --margin 0").exit_code, 0);
  EXPECT_THAT(call("a1 b1 --margin 1").output,
              HasSubstr("--margin 1: give a difference of scores below 1"));
}

TEST_F(CompareCommand, SaysWhichRunsHaveNotEndedOrFailed) {
  const SweepFiles files(write_system_sweep(folder_ / "sweep"));
  const auto runs = files.record().runs;
  const auto drop = [&](const SweepRun& run) {
    std::filesystem::remove_all(files.run_folder(run));
    std::filesystem::remove(files.result_file(run));
  };
  for (const SweepRun& run : {runs[2], runs[3]}) {
    drop(run);
    write_result(files.result_file(run), {.id = run.id, .finished = false, .error = "diverged"});
  }
  EXPECT_THAT(call("sweep").output,
              HasSubstr("all runs of B (a:b) failed; see `tpudist sweep status sweep`"));
  EXPECT_EQ(call("sweep").exit_code, 2);
  for (const SweepRun& run : runs) drop(run);
  EXPECT_THAT(call("sweep").output,
              HasSubstr("no run of sweep has ended yet; see `tpudist sweep status sweep`"));
}

TEST_F(CompareCommand, RefusesWithOneLine) {
  EXPECT_NE(call("a1 b1 --difference -1").exit_code, 0);
  EXPECT_THAT(call("a1").output, HasSubstr("1 input before --with: "));
  EXPECT_EQ(call("a1").exit_code, 2);
  EXPECT_THAT(call("nothing").output, HasSubstr("nothing: there is no such folder"));
  EXPECT_THAT(call("a1 a1").output,
              HasSubstr("A and B are the same trainings: there is nothing to compare"));
  EXPECT_THAT(call("a1 a2 b1").output,
              HasSubstr("3 inputs before --with: name two (A and B) or one sweep of two variants"));
  EXPECT_THAT(call("a1 nothing").output, HasSubstr("nothing: there is no such folder"));
  EXPECT_THAT(call("a1 b1 --with b2").output, HasSubstr("runs of different settings"));
  EXPECT_THAT(call("a1 a1 --with b1").output, HasSubstr("one and the same training"));
}

// Two runs of a system and one of another.
class ReportCommand : public CommandTest {
 protected:
  ReportCommand() {
    write_system_run(folder_ / "a1", 1, 4);
    write_system_run(folder_ / "a2", 2, 4);
  }

  Outcome call(const std::string& arguments) const {
    return CommandTest::call("report " + arguments);
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
};

TEST_F(ReportCommand, WritesOnePageWithEverySection) {
  EXPECT_THAT(output_of(call("a1 a2")), StartsWith("report.html: "));
  const std::string page = read_text_file(folder_ / "report.html");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  for (const char* id : {"summary", "curves", "graphs", "folds", "variance", "sizes", "slowdown",
                         "timing", "configuration"})
    EXPECT_THAT(page, HasSubstr("id=\"" + std::string(id) + "\"")) << id;
  EXPECT_THAT(page, AllOf(HasSubstr("resnet50.4x4.fp16"), Not(HasSubstr("src=\"http"))));
}

TEST_F(ReportCommand, WritesItsTables) {
  const std::string outcome = output_of(call("a1 a2 --html page.html --csv tables --no-ceilings"));
  EXPECT_TRUE(exists("page.html"));
  EXPECT_FALSE(exists("report.html"));
  std::size_t tables = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "tables")) {
    const std::string text = read_text_file(file.path());
    EXPECT_GT(std::ranges::count(text, '\n'), 1) << file.path();
    ++tables;
  }
  EXPECT_GT(tables, 3u);
  EXPECT_THAT(outcome, HasSubstr("tables: " + std::to_string(tables) + " tables\n"));
}

TEST_F(ReportCommand, TakesAFolderOfRunsAndCountsACopyOnce) {
  std::filesystem::copy(folder_ / "a1", folder_ / "a1-backup",
                        std::filesystem::copy_options::recursive);
  EXPECT_THAT(output_of(call(". --no-ceilings")),
              AllOf(HasSubstr("report.html: 2 runs: 2 finished"), HasSubstr("a1-backup"),
                    HasSubstr("is the same training as"), HasSubstr("It counts once.")));
}

TEST_F(ReportCommand, SaysWhatCannotBe) {
  EXPECT_EQ(call("").exit_code, 2);
  EXPECT_THAT(output_of(call("a1 a3"), 2), HasSubstr("a3"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(output_of(call("empty"), 2), HasSubstr("empty"));
  EXPECT_THAT(output_of(call("a1 --html nowhere/report.html"), 2), HasSubstr("nowhere"));
  const Outcome no_tables = call("a1 --csv a1/config.yaml");
  EXPECT_NE(no_tables.exit_code, 0);
  EXPECT_THAT(no_tables.output, HasSubstr("a1/config.yaml"));
  for (const char* file : {"empty/report.html", "nowhere"}) EXPECT_FALSE(exists(file)) << file;
}

}  // namespace
}  // namespace tpudist::test
