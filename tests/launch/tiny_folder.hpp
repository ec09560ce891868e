#pragma once

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist::test {

// A folder in which a user calls the program, with the experiment tiny.yaml: two members over two
// folds of the tiny data. One folder for all tests of a suite.
class TinyFolder : public ::testing::Test {
 protected:
  // Call in SetUpTestSuite. `settings` as on the command line.
  static void start(std::vector<std::string> settings = {}) {
    settings.insert(settings.end(), {"ensemble.members=2", "dist.threads=1", "dist.device=cpu"});
    folder_ = std::make_unique<TempDir>();
    std::ofstream(*folder_ / "tiny.yaml") << tiny_experiment(settings).resolved_yaml;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  // Runs the program; the output includes standard error.
  static Outcome call(const std::string& arguments) {
    return run_program(arguments + " 2>&1", "cd " + folder_->path().string() + " && ");
  }
  static void train(const std::string& run, const std::string& settings = "") {
    const Outcome trained = call("train tiny.yaml --quiet --run-dir " + run + " " + settings);
    ASSERT_EQ(trained.exit_code, 0) << trained.output;
  }

  static inline std::unique_ptr<TempDir> folder_;
};

// The configurations of the row `id` of a submission's file, fastest first; empty without that row.
inline std::vector<int> submission_row(const std::filesystem::path& csv, const std::string& id) {
  std::vector<int> configs;
  std::istringstream lines(read_text_file(csv));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(id + ",")) continue;
    std::istringstream numbers(line.substr(id.size() + 1));
    for (std::string number; std::getline(numbers, number, ';');)
      configs.push_back(std::stoi(number));
  }
  return configs;
}

}  // namespace tpudist::test
