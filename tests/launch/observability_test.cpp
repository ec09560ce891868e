#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/mpi_program.hpp"
#include "tests/launch/tiny_folder.hpp"
#include "tests/support/chrome_trace.hpp"

// What the program tells of its surroundings and of where its time goes, alone and on several
// ranks.
namespace tpudist::test {
namespace {

namespace fs = std::filesystem;
using ::testing::IsSupersetOf;

// The object in what was printed; mpirun may add lines of its own.
nlohmann::json object_in(const std::string& output) {
  const std::size_t begin = output.find('{'), end = output.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return nullptr;
  return nlohmann::json::parse(output.substr(begin, end + 1 - begin));
}

TEST(Doctor, ShowsEveryRank) {
  const TempDir folder;
  for (const int ranks : {0, 2}) {
    const nlohmann::json json = object_in(
        output_of(run_ranks(ranks, "doctor --json --run-dir " + (folder / "runs").string())));
    const auto expected = static_cast<std::size_t>(std::max(ranks, 1));
    ASSERT_EQ(json.at("ranks").size(), expected);
    for (std::size_t r = 0; r < expected; ++r) {
      const nlohmann::json& rank = json["ranks"][r];
      EXPECT_EQ(rank["rank"], r);
      EXPECT_EQ(rank["local_rank"], r);
      EXPECT_EQ(rank["mpi_threads"], "funneled");
      EXPECT_FALSE(rank["cores"].empty());
      EXPECT_FALSE(rank["kernels"].get<std::string>().empty());
    }
    for (const char* name : {"LibTorch", "MPI", "HDF5", "compiler", "NCCL"})
      EXPECT_TRUE(json["versions"].contains(name)) << name;
    EXPECT_EQ(json["folder"]["writable"], true);
    EXPECT_EQ(json["all_reduce"].empty(), ranks == 0);
    EXPECT_EQ(json["memory"][0]["ranks"], expected);
    EXPECT_GT(json["memory"][0]["alone_bytes_per_second"].get<double>(), 1e8);
    EXPECT_TRUE(fs::is_empty(fs::path((folder / "runs").string()).parent_path()));
  }
}

TEST(Doctor, FailsWhereNothingCouldBeTrained) {
  EXPECT_THAT(output_of(run_ranks(0, "doctor --run-dir /proc/runs"), 1),
              AllOf(HasSubstr("ranks\n"), HasSubstr("versions\n"), HasSubstr("copying memory"),
                    HasSubstr("broken: /proc cannot be written")));
}

class TraceOption : public TinyFolder {
 protected:
  static void SetUpTestSuite() {
    start({"train.steps=4", "train.checkpoint_every=2", "train.evaluate_rows=8",
           "train.log_every=1", "train.last_evaluation=sampled"});
  }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string traced(const std::string& run, const std::string& trace) {
    return "train " + path("tiny.yaml") + " --run-dir " + path(run) + " --trace " + path(trace);
  }
};

TEST_F(TraceOption, WritesOneFileOfAllRanks) {
  const std::string outcome = output_of(run_ranks(2, traced("run", "trace.json")));
  EXPECT_THAT(outcome, AllOf(HasSubstr("reduce "), ContainsRegex("  rank [01] x[0-9.]+\n")));
  std::istringstream lines(outcome);
  for (std::string line; std::getline(lines, line);)
    if (line.find("ms/step") != line.npos) EXPECT_LT(line.size(), 120u) << line;
  const ChromeTrace trace = read_chrome_trace(read_text_file(path("trace.json")));
  ASSERT_EQ(trace.processes.size(), 2u);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(
        trace.names(rank),
        IsSupersetOf({"step", "wait for data", "agree on step", "compute", "forward", "backward",
                      "reduction", "optimizer", "checkpoint", "evaluation", "data", "plan"}));
  }
  output_of(run_ranks(0, "evaluate " + path("run") + " --trace " + path("evaluate.json")));
  EXPECT_TRUE(read_chrome_trace(read_text_file(path("evaluate.json"))).names(0).contains("score"));
}

TEST_F(TraceOption, IsRefusedBeforeTheWorkWhereItCannotBeWritten) {
  EXPECT_THAT(output_of(run_ranks(0, traced("refused", "nowhere/trace.json")), 2),
              HasSubstr("tpudist: error: "));
  EXPECT_FALSE(fs::exists(path("refused")));
}

}  // namespace
}  // namespace tpudist::test
