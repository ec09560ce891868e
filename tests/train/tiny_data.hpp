#pragma once

#include <filesystem>
#include <string>

#include "core/config/config.hpp"
#include "core/progress.hpp"
#include "data/synth/synth.hpp"
#include "tests/support/converted.hpp"
#include "tests/support/temp_dir.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist::test {

// Shards of the preset `tiny` in `folder`, with `configs` configurations per graph, if it is not 0.
inline std::filesystem::path make_tiny_shards(const std::filesystem::path& folder,
                                              std::int64_t configs = 0) {
  NoProgress progress;
  SynthOptions synth;
  synth.preset = "tiny";
  synth.configs = configs;
  synthesise(synth, folder / "npz", progress);
  return convert_npz(folder);
}

// The same shards, made once for each process.
inline const std::filesystem::path& tiny_shards() {
  static const TempDir folder;
  static const std::filesystem::path shards = make_tiny_shards(folder.path());
  return shards;
}

// A small experiment on tiny_shards; `overrides` as on the command line.
inline Experiment tiny_experiment(std::vector<std::string> overrides = {}) {
  const std::string text = R"(
name: tiny
data: {shards: ')" + tiny_shards().string() +
                           R"(', collection: layout:xla:random}
batch: {slates: 3, configs: 4}
model: {preset: latenciaga_xla}
loss: {list_mle: {weight: 1, clip_norm: 500}}
optimizer: {name: adamw, lr: 1e-3, eps: 1e-6, clip_norm: 100, decay: {output: 1e-4}}
schedule: {name: multistep, at: [0.6, 0.8], factor: 0.3}
train: {steps: 6}
ensemble: {members: 3, vary: [init, fold], folds: 2}
)";
  ConfigDocument document = ConfigDocument::parse(text, "tiny.yaml", overrides);
  return read_experiment(document);
}

}  // namespace tpudist::test
