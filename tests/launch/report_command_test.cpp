// `tpudist report` as a user calls it.

#include <algorithm>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/results/scores/system_case.hpp"

namespace tpudist::test {
namespace {

// Two runs of a system and one of another.
class ReportCommand : public ::testing::Test {
 protected:
  ReportCommand() {
    write_system_run(folder_ / "a1", 1, 4);
    write_system_run(folder_ / "a2", 2, 4);
  }

  Outcome call(const std::string& arguments) const {
    return run_program("report " + arguments + " 2>&1", "cd " + folder_.path().string() + " && ");
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  TempDir folder_;
};

TEST_F(ReportCommand, WritesOnePageWithEverySection) {
  EXPECT_THAT(output_of(call("a1 a2")), StartsWith("report.html: "));
  const std::string page = read_text_file(folder_ / "report.html");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  for (const char* id : {"summary", "curves", "graphs", "folds", "variance", "sizes", "ranks",
                         "slowdown", "suspects", "timing", "configuration"})
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
