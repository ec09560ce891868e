#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/mpi_program.hpp"
#include "tests/support/chrome_trace.hpp"
#include "tests/support/temp_dir.hpp"

// What the program tells of its surroundings and of where its time goes, alone and on several
// ranks.
namespace tpudist::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
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
    const Outcome outcome =
        run_ranks(ranks, "doctor --json --run-dir " + (folder / "runs").string());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const nlohmann::json json = object_in(outcome.output);
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
  const Outcome outcome = run_ranks(0, "doctor --run-dir /proc/runs");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("ranks\n"), HasSubstr("versions\n"), HasSubstr("copying memory"),
                    HasSubstr("broken: /proc cannot be written")));
}

// Data, and an experiment on them.
class TraceOption : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_program("synth " + path("npz") + " --preset tiny 2>&1").exit_code, 0);
    ASSERT_EQ(
        run_program("convert " + path("npz") + " " + path("shards") + " --jobs 1 2>&1").exit_code,
        0);
    std::ofstream(path("tiny.yaml")) << "name: tiny\ndata: {shards: " << path("shards")
                                     << ", collection: layout:xla:random}\n"
                                        R"(batch: {slates: 3, configs: 4}
model: {preset: latenciaga_xla}
loss: {list_mle: {weight: 1, clip_norm: 500}}
optimizer: {name: adamw, lr: 1e-3}
train: {steps: 4, checkpoint_every: 2, evaluate_rows: 8, log_every: 1, last_evaluation: sampled}
ensemble: {members: 2, vary: [init]}
dist: {threads: 1, device: cpu}
)";
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string train(const std::string& more) const {
    return "train " + path("tiny.yaml") + " --run-dir " + path("run") + " " + more;
  }

  TempDir folder_;
};

TEST_F(TraceOption, WritesOneFileOfAllRanks) {
  const Outcome outcome = run_ranks(2, train("--trace " + path("trace.json")));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("reduce "), HasSubstr("slowest rank ")));
  const ChromeTrace trace = read_chrome_trace(read_text_file(path("trace.json")));
  ASSERT_EQ(trace.processes.size(), 2u);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(
        trace.names(rank),
        IsSupersetOf({"step", "wait for data", "agree on step", "compute", "forward", "backward",
                      "reduction", "optimizer", "checkpoint", "evaluation", "data", "plan"}));
  }
  const Outcome scored =
      run_ranks(0, "evaluate " + path("run") + " --trace " + path("evaluate.json"));
  ASSERT_EQ(scored.exit_code, 0) << scored.output;
  EXPECT_TRUE(read_chrome_trace(read_text_file(path("evaluate.json"))).names(0).contains("score"));
}

TEST_F(TraceOption, IsRefusedBeforeTheWorkWhereItCannotBeWritten) {
  const Outcome outcome = run_ranks(0, train("--trace " + path("nowhere/trace.json")));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("tpudist: error: "));
  EXPECT_FALSE(fs::exists(path("run")));
}

}  // namespace
}  // namespace tpudist::testing
