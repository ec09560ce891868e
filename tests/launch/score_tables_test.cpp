// What the commands that print scores say of fixed runs, number by number. The texts are in
// tests/golden/score_tables; with TPUDIST_WRITE_GOLDEN in the environment they are written anew.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "core/file_system.hpp"
#include "core/version.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/results/scores/system_case.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

std::string replace_all(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// Numbers of more than six decimals, which may differ in the last bits, with six digits.
std::string rounded(const std::string& text) {
  static const std::regex number(R"(-?[0-9]+\.[0-9]{7,}(e[-+]?[0-9]+)?)");
  std::string result;
  auto end = text.begin();
  for (std::sregex_iterator at(text.begin(), text.end(), number), none; at != none; ++at) {
    result.append(end, text.begin() + at->position());
    const double value = std::stod(at->str());
    result += std::abs(value) < 1e-12 ? "0" : fmt::format("{:.6g}", value);
    end = text.begin() + at->position() + at->length();
  }
  return result.append(end, text.end());
}

// The words of a page without its drawings and tables.
std::string page_text(std::string page) {
  page = std::regex_replace(page, std::regex("<(style|script|svg|table)[^>]*>[^]*?</\\1>"), "");
  page = std::regex_replace(page, std::regex("<[^>]*>"), "");
  return std::regex_replace(page, std::regex("\n\\s*\n+"), "\n");
}

// Runs that were trained for two steps, and folders of runs with drawn scores.
class ScoreTables : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    // The golden texts were made with these kernels. Near equal scores change places with others.
    setenv("TPUDIST_CPU", "avx2", 1);
    folder_ = new TempDir;
    std::ofstream(*folder_ / "tiny.yaml")
        << tiny_experiment({"ensemble.members=2", "train.steps=2"}).resolved_yaml;
    train("a", "predictions.rows=all");
    train("b", "predictions.rows=8 seed.init=2 seed.order=2 evaluate.slate.configs=8");
    train("c", "seed.init=3 seed.order=3 ensemble.folds=none 'ensemble.vary=[init]'");
    train("d", "ensemble.fold_over=train+valid predictions.rows=all");
    train("tile", "data.collection=tile:xla model.preset=latenciaga_tile predictions.rows=all");
    // With larger rates the last bits of a BLAS change ranks.
    std::ofstream(*folder_ / "sweep.yaml")
        << "name: case\nexperiments: tiny.yaml\nset: {dist.threads: 1, predictions.rows: all}\n"
           "sweep: {seeds: 2, folds: 2, over: {optimizer.lr: [1e-3, 5e-4]}}\n"
           "choose: {by: out_of_fold, baseline: none}\n";
    for (int seed = 1; seed <= 3; ++seed) {
      write_system_run(*folder_ / fmt::format("good/{}", seed), seed, 4, 3);
      write_system_run(*folder_ / fmt::format("bad/{}", seed), seed, 12, 7);
      for (int member = 0; member < 2; ++member)
        write_split_run(*folder_ / fmt::format("split/{}-{}", seed, member), seed, 4, member);
    }
    write_system_sweep(*folder_ / "rates");
    PredictionsCase("tile:xla").write(*folder_ / "tile.h5");
  }
  static void TearDownTestSuite() {
    delete folder_;
    unsetenv("TPUDIST_CPU");
  }

  static void train(const std::string& run, const std::string& overrides) {
    run_or_fail("train tiny.yaml --run-dir " + run + " dist.threads=1 " + overrides);
  }
  static std::string run_or_fail(const std::string& arguments) {
    const Outcome outcome = run_program(arguments, "cd " + folder_->path().string() + " && ");
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.output;
    return outcome.output;
  }
  static std::string file(const std::string& name) { return read_text_file(*folder_ / name); }
  static std::string json(const std::string& name) {
    return nlohmann::json::parse(file(name)).dump(1) + "\n";
  }

  // What a command prints, and the JSON that it writes if asked for.
  void add(const std::string& arguments, bool with_json = false) {
    text_ += "$ tpudist " + arguments + "\n";
    text_ += run_or_fail(arguments + (with_json ? " --json out.json" : ""));
    if (with_json) text_ += json("out.json");
  }
  void add_file(const std::string& name, const std::string& text) {
    text_ += "== " + name + "\n" + text;
  }
  // The page of a report and its tables.
  void add_report(const std::string& inputs) {
    fs::remove_all(*folder_ / "tables");
    add("report " + inputs + " --csv tables --html page.html");
    text_ += page_text(file("page.html"));
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(*folder_ / "tables"))
      files.insert(entry.path());
    for (const fs::path& path : files) add_file(path.filename().string(), read_text_file(path));
  }

  void expect_golden(const std::string& name) {
    std::string text = replace_all(text_, folder_->path().string(), "FOLDER");
    text = replace_all(text, tiny_shards().parent_path().string(), "DATA");
    text = replace_all(text, std::string(version()), "VERSION");
    text = std::regex_replace(rounded(text), std::regex("\\b[0-9a-f]{16}\\b"), "HASH");
    const fs::path path = source_folder() / "tests/golden/score_tables" / (name + ".txt");
    if (std::getenv("TPUDIST_WRITE_GOLDEN")) std::ofstream(path) << text;
    EXPECT_EQ(text, read_text_file(path)) << path;
  }

  std::string text_;
  static inline TempDir* folder_ = nullptr;
};

TEST_F(ScoreTables, OfTraining) {
  for (const std::string run : {"a", "b", "c", "d", "tile"})
    add_file(run + "/scores.json", json(run + "/scores.json"));
  expect_golden("training");
}

// What is to be scored, without how long that takes.
TEST_F(ScoreTables, OfAForecast) {
  for (const std::string more :
       {"", " ensemble.fold_over=train+valid train.last_evaluation=sampled"}) {
    const std::string text = run_or_fail(
        "train tiny.yaml --dry-run dist.threads=1 predictions.rows=all "
        "train.evaluate_every=1 train.evaluate_rows=8" +
        more);
    const std::size_t at = text.find("\nevaluation\n");
    ASSERT_NE(at, std::string::npos) << text;
    text_ += text.substr(at + 1, text.find("\nwork of", at) - at);
  }
  text_ = std::regex_replace(text_, std::regex(": [^\n]*FLOP[^\n]*"), "");
  expect_golden("forecast");
}

TEST_F(ScoreTables, OfEvaluate) {
  add("evaluate a", true);
  add("evaluate a --combine rank_mean --keep-all", true);
  add("evaluate a --split train");
  add("evaluate b --combine mean");
  add("evaluate d", true);
  add("evaluate tile --keep-all", true);
  expect_golden("evaluate");
}

TEST_F(ScoreTables, OfEnsemblesThatScore) {
  add("ensemble a c --split valid --combine softmax --temperature 0.5 --scores both.h5", true);
  add("ensemble both.h5 --combine borda");
  add("ensemble a tile --split valid --keep-all");
  add("ensemble c --keep-all --csv test.csv");
  add_file("test.csv", file("test.csv"));
  expect_golden("ensemble");
}

TEST_F(ScoreTables, OfPredictions) {
  add("ensemble --out-of-fold good/1 good/2 bad/1", true);
  add("ensemble --out-of-fold good/1 good/2 bad/1 --combine reciprocal_rank", true);
  add("ensemble --out-of-fold split/1-0 split/1-1 split/2-0 split/2-1 --keep-all");
  add("ensemble tile.h5 --combine min_max --min-members 1", true);
  expect_golden("predictions");
}

TEST_F(ScoreTables, OfCompare) {
  add("compare good/1 good/2 good/3 --with bad/1 bad/2 bad/3 --difference 0.05", true);
  add("compare good/1 good/2 good/3 --with bad/1 bad/2 bad/3 --by together", true);
  add("compare good/1 bad/1");
  add("compare split/1-0 split/1-1 split/2-0 split/2-1 --with bad/1 bad/2 --by together");
  add("compare rates:0 rates:1");
  expect_golden("compare");
}

TEST_F(ScoreTables, OfASweep) {
  add("sweep expand sweep.yaml --dir swept");
  run_or_fail("sweep run swept");
  add("sweep collect swept --csv swept.csv", true);
  add_file("swept.csv", file("swept.csv"));
  expect_golden("sweep");
}

TEST_F(ScoreTables, OfReports) {
  add_report("good/1 good/2 good/3");
  add_report("good/1 good/2 bad/1");
  add_report("split");
  expect_golden("report");
}

TEST_F(ScoreTables, OfReportsOfASweepAndATileCollection) {
  add_report("rates");
  add_report("tile.h5");
  expect_golden("report_more");
}

// Predictions that say by which rule members were combined.
TEST_F(ScoreTables, OfAReportOfPredictionsByAnotherRule) {
  run_or_fail("predict c --split valid --combine mean --csv mean.csv --scores mean.h5");
  add_report("mean.h5");
  expect_golden("report_mean");
}

// Scores of a run without predictions.
TEST_F(ScoreTables, OfAReportWithoutPredictions) {
  run_or_fail("report c --csv tables --html page.html");
  for (const std::string name : {"scores.csv", "graphs-valid.csv"})
    add_file(name, file("tables/" + name));
  expect_golden("report_scores_json");
}

}  // namespace
}  // namespace tpudist::test
