#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/launch/mpi_program.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {

inline std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The rest of the line after `key`, "" when there is none.
inline std::string value_of(const std::string& output, const std::string& key) {
  const std::size_t at = output.find(key);
  if (at == std::string::npos) return {};
  return output.substr(at + key.size(), output.find('\n', at) - at - key.size());
}

inline int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Data and a run of one experiment, made once for all tests.
class Ranks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    const auto make_shards = [](const std::string& name, const std::string& seed) {
      const std::string npz = path("npz-" + name);
      for (const std::string& command : {"synth " + npz + " --preset tiny --seed " + seed,
                                         "convert " + npz + " " + path(name) + " --jobs 1"}) {
        const Outcome made = run_program(command + " 2>&1");
        ASSERT_EQ(made.exit_code, 0) << command << ": " << made.output;
      }
    };
    make_shards("shards", "1");
    make_shards("other", "2");
    std::ofstream(path("tiny.yaml")) << "name: tiny\ndata: {shards: " << path("shards")
                                     << ", collection: layout:xla:random}\n"
                                        R"(batch: {slates: 3, configs: 4}
model: {preset: latenciaga_xla}
loss: {list_mle: {weight: 1, clip_norm: 500}}
optimizer: {name: adamw, lr: 1e-3}
schedule: {name: multistep, at: [0.6, 0.8], factor: 0.3}
train: {steps: 4, checkpoint_every: 2, evaluate_rows: 8, log_every: 1, last_evaluation: sampled,
        average: {kind: ema, decay: 0.5}}
ensemble: {members: 2, vary: [init]}
dist: {threads: 1, device: cpu}
)";
    ASSERT_EQ(train(0, "one").exit_code, 0);
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string train_arguments(const std::string& run, const std::string& more = "") {
    return "train " + path("tiny.yaml") + " " + more + " --run-dir " + path(run);
  }
  static Outcome train(int ranks, const std::string& run, const std::string& more = "") {
    return run_ranks(ranks, train_arguments(run, more));
  }
  // Expects the exit code and one line of an error; shows all output if there is more.
  static void expect_refusal(const Outcome& outcome, int exit_code, const std::string& line) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "tpudist: error"), 1) << outcome.output;
    EXPECT_THAT(outcome.output, ::testing::HasSubstr("tpudist: error" + line));
  }

  static inline TempDir* folder_ = nullptr;
};

}  // namespace tpudist::test
