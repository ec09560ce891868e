#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "data/hlo/layout_space.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {

struct SynthOptions {
  std::string preset = "demo";  // tiny, demo, nlp, xla, tile or huge
  std::uint64_t seed = 1;
  std::vector<Collection> collections;  // empty: all of the preset
  std::vector<std::int64_t> graphs;     // train, valid, test; empty: as in the preset
  std::int64_t configs = 0;             // per graph; 0: as in the preset
  std::filesystem::path truth;          // folder for the test split's run times; empty: not written
  int threads = 1;
};

struct SynthFile {
  std::filesystem::path path;  // relative to the root
  std::int64_t nodes = 0, edges = 0, config_nodes = 0, configs = 0;
  std::uintmax_t bytes = 0;
  // The noise ceiling: the score of the noise-free times against the measured ones, Kendall's tau-b
  // (layout) or the tile score. No prediction can be expected to do better. Also known for the test
  // split. NaN if undefined, as for a graph of one configuration.
  double ceiling = 0;
};

// Writes a synthetic data set as NPZ files in the layout of TpuGraphs below `root`, e.g.
// layout/xla/random/train/conv_sela.4x2.fp16.npz, with the arrays and types of the real files. The
// random and the default set have the same graphs. Run times come from a hidden cost model with
// noise. The test split gets run times of 0 (normalizers 1); the real ones go to files of the same
// names below `options.truth`, with the noise-free times `config_time` f64 [c].
//
// Files are a pure function of the options except `threads`, the number of graphs made at the same
// time. A collection's folder keeps the options as synth.json. Only the same options, with a
// version that makes the same files from them, may write there again; else ConfigError. Returns the
// files sorted by path. Throws IoError.
std::vector<SynthFile> synthesise(const SynthOptions& options, const std::filesystem::path& root,
                                  ProgressSink& progress);

// The times in ns, without noise, of configurations of one of the graphs of `synthesise`. `npz`: the
// graph's file in a layout collection, whose folder has the options. `configs`: the state of each
// configurable node. Throws ConfigError for a file of another version or of no such folder, and
// DataError for states that the node has not.
std::vector<double> true_times(const std::filesystem::path& npz,
                               const std::vector<std::vector<LayoutState>>& configs);

}  // namespace tpudist
