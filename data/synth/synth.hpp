#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {

struct SynthOptions {
  std::string preset = "demo";  // tiny, demo, nlp, xla, tile or huge
  std::uint64_t seed = 1;
  std::vector<Collection> collections;  // empty: all that the preset has
  std::vector<std::int64_t> graphs;     // train, valid, test; empty: the preset's
  std::int64_t configs = 0;             // per graph; 0: the preset's
  std::filesystem::path truth;  // folder for the run times of the test split; empty: not written
  int threads = 1;
};

struct SynthFile {
  std::filesystem::path path;  // relative to the root
  std::int64_t nodes = 0, edges = 0, config_nodes = 0, configs = 0;
  std::uintmax_t bytes = 0;
  // The noise ceiling: the score of the noise-free times on the measured ones, Kendall's tau-b
  // (layout) or the tile score; no prediction can expect to do better. Also known for the test
  // split. NaN where it is not defined, as for a graph of one configuration.
  double ceiling = 0;
};

// Writes a synthetic data set as NPZ files in the layout of TpuGraphs below `root`, e.g.
// layout/xla/random/train/resnet50.4x2.fp16.npz, with the arrays and types of the real files. Run
// times come from a hidden cost model with noise; those of the test split are 0 (normalizers 1),
// and go, with the noise-free times `config_time` f64 [c], to files of the same names below
// `options.truth`. The same graphs are in the random and the default set. Files are a pure function
// of options other than `threads`, which count graphs made at the same time. Returns the files
// sorted by path. Throws IoError, and ConfigError where the folder of a collection holds other data:
// what the options say is kept there as synth.json, and only equal options of a version that makes
// the same of them may write there again.
std::vector<SynthFile> synthesise(const SynthOptions& options, const std::filesystem::path& root,
                                  ProgressSink& progress);

}  // namespace tpudist
