// `tpudist inspect --plan` as a user calls it.

#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/launch/run_program.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist::test {
namespace {

Outcome run_plans(const std::string& arguments) {
  return test::run_program("inspect " + arguments);
}

class InspectPlans : public ::testing::Test {
 protected:
  InspectPlans() : file_((folder_ / "tiny.yaml").string()) {
    std::ofstream(file_) << tiny_experiment().resolved_yaml;
  }

  // The JSON of `inspect --plan ARGUMENTS`.
  nlohmann::json plans(const std::string& arguments) const {
    const Outcome outcome = run_plans("--plan " + file_ + " --json " + arguments + " 2>/dev/null");
    EXPECT_EQ(outcome.exit_code, 0) << arguments;
    return nlohmann::json::parse(outcome.output);
  }

  const TempDir folder_;
  const std::string file_;
};

// Same numbers without the times.
nlohmann::json timeless(nlohmann::json json) {
  for (auto& graph : json.at("graphs")) graph.erase("plan_seconds");
  return json;
}

TEST_F(InspectPlans, GivesNumbersThatBelongTogether) {
  for (const char* collection : {"layout:xla:random", "layout:nlp:random", "tile:xla"}) {
    const auto json = plans(std::string("data.collection=") + collection);
    ASSERT_FALSE(json.at("graphs").empty()) << collection;
    double dense = 0, refined = 0, taken = 0;
    int count = 0;
    for (const auto& graph : json.at("graphs")) {
      const std::vector<std::int64_t> rows = graph.at("rows");
      ASSERT_EQ(rows.size(), tiny_experiment().network.blocks.size() + 1);
      EXPECT_EQ(graph.at("dense_rows"),
                graph.at("nodes").get<std::int64_t>() * graph.at("configs").get<std::int64_t>());
      for (const std::int64_t n : rows) {
        EXPECT_GT(n, 0);
        EXPECT_LE(n, graph.at("dense_rows").get<std::int64_t>());
      }
      // What tells two nodes apart before a layer tells them apart after it.
      EXPECT_TRUE(std::ranges::is_sorted(rows));
      EXPECT_LE(graph.at("needed_rows").get<std::int64_t>(), rows.back());
      EXPECT_LE(graph.at("config_nodes").get<std::int64_t>(),
                graph.at("nodes").get<std::int64_t>());
      EXPECT_LE(graph.at("configs"), 4);
      EXPECT_LE(graph.at("configs"), graph.at("distinct_configs"));
      EXPECT_GE(graph.at("plan_seconds"), 0.0);
      const double d = graph.at("dense_gflop"), r = graph.at("refined_gflop");
      EXPECT_GE(graph.at("saving"), 1.0);
      EXPECT_DOUBLE_EQ(graph.at("saving"), d / r);
      EXPECT_EQ(graph.at("auto"), r <= 0.9 * d ? "refined" : "dense");
      dense += d;
      refined += r;
      taken += graph.at("auto") == "refined" ? r : d;
      count += graph.at("auto") == "refined";
    }
    EXPECT_DOUBLE_EQ(json.at("total_saving"), dense / refined);
    EXPECT_DOUBLE_EQ(json.at("auto_saving"), dense / taken);
    EXPECT_EQ(json.at("auto_refined"), count);
  }
}

TEST_F(InspectPlans, IsTheSameForAnyNumberOfThreadsAndWhateverPlanIsTrained) {
  const auto json = timeless(plans(""));
  EXPECT_EQ(timeless(plans("--threads 3")), json);
  EXPECT_EQ(timeless(plans("--threads 1 plan=dense")), json);
}

TEST_F(InspectPlans, TakesSizeShardsAndFiltersFromTheCommandLine) {
  const auto all = plans("");
  const std::string first = all.at("graphs").at(0).at("name");
  const auto two = plans("--configs 2 data.include.train=[" + first + "] data.shards=none " +
                         tiny_shards().string());
  EXPECT_EQ(two.at("configs"), 2);
  ASSERT_EQ(two.at("graphs").size(), 1u);
  EXPECT_EQ(two.at("graphs").at(0).at("name"), first);
  EXPECT_EQ(two.at("graphs").at(0).at("configs"), 2);
  EXPECT_EQ(plans("batch.configs=2").at("graphs").at(0).at("rows").size(),
            all.at("graphs").at(0).at("rows").size());
}

TEST_F(InspectPlans, PrintsATableAndTheSummary) {
  const auto json = plans("");
  const std::string table = output_of(run_plans("--plan " + file_ + " 2>/dev/null"));
  EXPECT_THAT(table, HasSubstr("layout:xla:random train, plans of a slate of 4 configurations\n"));
  for (const auto& graph : json.at("graphs"))
    EXPECT_THAT(table, HasSubstr("\n" + graph.at("name").get<std::string>() + " "));
  EXPECT_THAT(table,
              HasSubstr("\n" + std::to_string(json.at("graphs").size()) + " graphs: saving "));
}

TEST_F(InspectPlans, NamesADamagedShard) {
  std::filesystem::copy(tiny_shards(), folder_ / "damaged",
                        std::filesystem::copy_options::recursive);
  const auto shard = folder_ / "damaged/layout/xla/random/train/shard-00000.h5";
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) / 2);
  EXPECT_THAT(
      output_of(run_plans((folder_ / "damaged").string() + " --plan " + file_ + " 2>&1"), 3),
      AllOf(HasSubstr("tpudist: error: "), HasSubstr("shard-00000.h5")));
}

TEST_F(InspectPlans, WrongUsageIsExitCode2) {
  const std::string shards = tiny_shards().string();
  for (const std::string& arguments :
       {std::string(), std::string("no-such-folder"), std::string("--plan none.yaml"),
        "--plan " + file_ + " --configs 1", "--plan " + file_ + " batch.confgs=3",
        "--plan " + file_ + " --collection tile:xla", shards + " --threads 2",
        shards + " batch.configs=3", "--plan " + file_ + " data.include.train=[nothing]"}) {
    EXPECT_FALSE(output_of(run_plans(arguments + " 2>&1"), 2).empty()) << arguments;
  }
  EXPECT_THAT(run_plans("no-such-folder 2>&1").output, HasSubstr("no-such-folder"));
}

// Without --plan nothing needs the program beside it.
TEST_F(InspectPlans, PlainInspectNeedsNoLibTorch) {
  std::filesystem::copy_file(test::program(), folder_ / "tpudist");
  const std::string alone = (folder_ / "tpudist").string() + " inspect ";
  EXPECT_EQ(std::system((alone + tiny_shards().string() + " >/dev/null 2>&1").c_str()), 0);
  EXPECT_EQ(WEXITSTATUS(std::system((alone + "--plan " + file_ + " >/dev/null 2>&1").c_str())), 1);
}

TEST_F(InspectPlans, DryRunSaysWhatIsTaken) {
  const auto [exit_code, text] = test::run_program("train --dry-run " + file_ + " 2>&1");
  EXPECT_EQ(exit_code, 0);
  EXPECT_THAT(
      text, AllOf(HasSubstr(" of 9 units of the first 3 steps refined"), HasSubstr("\n  taken ")));
}

TEST_F(InspectPlans, DryRunPlansForRanksThatDoNotRun) {
  const auto [exit_code, text] = test::run_program("train --dry-run --ranks 3 " + file_ + " 2>&1");
  EXPECT_EQ(exit_code, 0) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("work of 3 ranks"), HasSubstr("\n  rank 2 "),
                          HasSubstr("\n  balance ")));
  EXPECT_EQ(test::run_program("train --ranks 3 " + file_ + " 2>&1").exit_code, 2);
  EXPECT_EQ(test::run_program("train --dry-run --ranks 0 " + file_ + " 2>&1").exit_code, 2);
}

TEST_F(InspectPlans, DryRunSaysWhatEvaluationsCost) {
  const auto dry = [&](const std::string& overrides) {
    return test::run_program("train --dry-run " + file_ + " dist.device=cpu " + overrides + " 2>&1")
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
