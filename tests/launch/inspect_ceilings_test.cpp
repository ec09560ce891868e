// `tpudist inspect` with --ceiling, or with --suspects and --html, as a user calls it.

#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/results/inspect/measured_graph.hpp"
#include "tests/support/converted.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

// A training graph with enough repeated measurements, one with too few, and none of another split.
class InspectCeilings : public ::testing::Test {
 protected:
  InspectCeilings() {
    const auto write = [&](int configs, const std::string& file) {
      const NoisyGraph graph(NoisyGraph::smooth, configs, 0.004, 1);
      measured(graph).write(folder_ / "npz/layout/own/random/train" / file, {.deflate_level = 1});
    };
    write(300, "one.npz");
    write(20, "few.npz");
    test::convert_npz(folder_.path());
  }

  Outcome inspect(const std::string& arguments) const {
    return test::run_program("inspect " + (folder_ / "shards").string() + " " + arguments +
                             " 2>&1");
  }

  TempDir folder_;
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

TEST_F(InspectCeilings, WritesAPageOfRunTimes) {
  const std::string page = (folder_ / "page.html").string();
  EXPECT_THAT(output_of(inspect("--suspects --html " + page)),
              AllOf(HasSubstr("data.entropy_filter=0.3 would remove"),
                    HasSubstr("page.html: run times of 1 collection\n")));
  const std::string html = read_text_file(page);
  EXPECT_THAT(html, AllOf(HasSubstr("one (train)"), HasSubstr("few (train)")));
  const Outcome json = inspect("--suspects --json --html " + page);
  EXPECT_TRUE(nlohmann::json::accept(json.output)) << json.output;
  EXPECT_EQ(read_text_file(page), html);
}

TEST_F(InspectCeilings, SaysWhyThereIsNoPage) {
  EXPECT_EQ(inspect("--html page.html").exit_code, 2);
  EXPECT_THAT(output_of(inspect("--suspects --html " + (folder_ / "none/page.html").string()), 2),
              HasSubstr("none"));
  std::filesystem::remove_all(folder_ / "npz");
  std::filesystem::remove_all(folder_ / "shards");
  test::NpzFixture::make_tile().write(folder_ / "npz/tile/xla/train/k.npz", {.deflate_level = 1});
  test::convert_npz(folder_.path());
  EXPECT_THAT(output_of(inspect("--suspects --html " + (folder_ / "page.html").string()), 2),
              AllOf(HasSubstr("--html"), HasSubstr("tile")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "page.html"));
}

}  // namespace
}  // namespace tpudist::test
