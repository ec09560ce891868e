#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/sweep/sweep_folder.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist::test {

// A folder with the experiment tiny.yaml on the preset `tiny`, and sweep files beside it.
class SweepCase {
 public:
  explicit SweepCase(const std::string& more = "") {
    write("tiny.yaml", "name: tiny\ndata: {shards: '" + tiny_shards().string() +
                           "', collection: 'layout:xla:random'}\n" + R"(
batch: {slates: 2, configs: 4}
model: {preset: latenciaga_xla}
loss: {list_mle: {weight: 1}}
optimizer: {lr: 1e-3}
train: {steps: 4, evaluate_rows: 8, last_evaluation: sampled}
dist: {threads: 1, device: cpu}
)" + more);
  }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // A sweep file of tiny.yaml.
  std::filesystem::path sweep(const std::string& text,
                              const std::string& name = "sweep.yaml") const {
    return write(name, "name: case\nexperiments: tiny.yaml\n" + text);
  }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

 private:
  TempDir folder_;
};

// A sweep of tiny.yaml, expanded into the folder "sweep"; `more` is added to tiny.yaml.
class ExpandedSweep : public SweepCase, public SweepFolder {
 public:
  explicit ExpandedSweep(const std::string& text, const std::string& more = "")
      : SweepCase(more), SweepFolder(expand(sweep(text), {}, SweepCase::path("sweep"))) {}
  using SweepCase::path, SweepFolder::path;
};

}  // namespace tpudist::test
