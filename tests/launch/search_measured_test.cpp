#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/launch/tiny_folder.hpp"

namespace tpudist::test {
namespace {

// A run, a module of HLO and the source of a graph with run times. Searches are short.
class SearchMeasured : public TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=3", "train.last_evaluation=none"});
    train("run");
  }
  static std::string source_of(const std::string& split) {
    const auto folder = tiny_shards().parent_path() / "npz/layout/xla/random" / split;
    return std::filesystem::directory_iterator(folder)->path().string();
  }
  static std::string printed(const std::string& file, const std::string& more) {
    return output_of(run_program("search " + file +
                                     " --run run --evaluations 200 --starts 2 --propose 6 " + more +
                                     " 2> /dev/null",
                                 "cd " + folder_->path().string() + " && "));
  }
  static nlohmann::json found(const std::string& file, const std::string& more = "") {
    return nlohmann::json::parse(printed(file, "--json " + more));
  }
  // Measures what was found: the worse the estimate, the shorter the time.
  static std::set<nlohmann::json> measure(nlohmann::json json, const std::string& file) {
    std::set<nlohmann::json> layouts;
    for (auto& entry : json["ranking"]) {
      entry["time"] = 1000 - 100 * entry["rank"].get<int>();
      layouts.insert(entry["layouts"]);
    }
    std::ofstream(*folder_ / file) << json;
    return layouts;
  }

  const std::string before_ = (jax_modules() / "layouts_before.pb").string(),
                    test_ = source_of("test"), valid_ = source_of("valid");
};

TEST_F(SearchMeasured, NoMeasuredConfigurationIsProposedAgain) {
  for (const std::string& file : {before_, test_}) {
    const auto first = found(file);
    const std::set<nlohmann::json> known = measure(first, "times.json");
    const auto next = found(file, "--measured times.json");
    EXPECT_EQ(next["measured"]["configs"], known.size()) << file;
    EXPECT_EQ(next["measured"]["not_listed"], 0);
    EXPECT_LT(next["measured"]["kendall_tau"], 0);
    EXPECT_FALSE(next.contains("best_is_better"));
    ASSERT_GE(next["ranking"].size(), 2u);
    for (std::size_t k = 1; k < next["ranking"].size(); ++k)
      EXPECT_FALSE(known.contains(next["ranking"][k]["layouts"])) << k;
    EXPECT_EQ(found(file, "--measured times.json"), next);
  }
  // The last list is of another program.
  EXPECT_THAT(call("search " + before_ + " --run run --measured times.json").output,
              HasSubstr("times.json: "));
}

TEST_F(SearchMeasured, ReadsAFileWithRunTimes) {
  const auto own = found(valid_, "--measured " + valid_);
  EXPECT_GT(own["measured"]["configs"], 10);
  EXPECT_EQ(own["measured"]["not_listed"], 0);
  // A list by the numbers of the file's configurations, as `rank` prints it.
  std::ofstream(*folder_ / "numbers.json")
      << R"([{"config": 0, "time": 5}, {"config": 1, "time": 6}, {"config": 2, "time": 7},
             {"config": 1000000, "time": 8}, {"config": 3}])";
  const auto few = found(valid_, "--measured numbers.json");
  EXPECT_EQ(few["measured"]["not_listed"], 1);
  EXPECT_LE(few["measured"]["configs"], 3);
  const Outcome none = call("search " + valid_ + " --run run --measured " + test_);
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.output, HasSubstr("has no run times"));
}

TEST_F(SearchMeasured, SaysWhatThePromiseIsOf) {
  const std::string made = printed(before_, ""), listed = printed(test_, "");
  EXPECT_THAT(made, AllOf(HasSubstr("no promise for the proposals: "),
                          HasSubstr(" --configs random:512`: cannot say how many to measure: run "
                                    "has no predictions")));
  EXPECT_THAT(listed,
              HasSubstr("for the list of `tpudist rank " + test_ + "`: cannot say how many"));
  measure(found(test_), "times.json");
  EXPECT_THAT(printed(test_, "--measured times.json"),
              AllOf(HasSubstr("measured 7 configurations; the model ranks them with Kendall tau -"),
                    HasSubstr(", corrected "), HasSubstr("  rank      time "),
                    Not(HasSubstr("no promise"))));
}

// Times may stand among the proposals of `rank --measured`; a time that is no number does not count.
TEST_F(SearchMeasured, ReadsTheNextOnesToo) {
  auto json = found(test_);
  json["measured"] = {{"next", {json["ranking"][1], json["ranking"][2], json["ranking"][3]}}};
  for (int k = 0; k < 3; ++k) json["measured"]["next"][k]["time"] = 5 + k;
  json["ranking"][4]["time"] = "7 ms";
  std::ofstream(*folder_ / "next.json") << json;
  const auto next = found(test_, "--measured next.json");
  EXPECT_EQ(next["measured"]["configs"], 3);
  EXPECT_EQ(next["measured"]["without_time"], 1);
}

}  // namespace
}  // namespace tpudist::test
