#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/synth/program.hpp"

namespace tpudist::synth {

// One small kernel to make: the computation of a model's fusion.
struct KernelSpec {
  std::string name;
  std::int64_t nodes = 40;     // exact; at least 2
  std::int64_t configs = 100;  // upper limit; fewer if the tensor has fewer tilings
  std::uint64_t key = 0;       // determines shapes, kind and configurations
  std::size_t split = 0;       // index into kSplits
};

// The kernel's operations: parameters, broadcasts and elementwise operations, perhaps around one
// convolution, dot or reduction, and the fusion as root.
Program build_kernel(const KernelSpec& spec);

// Tile sizes of one kernel, and the run time with each.
struct TileConfigs {
  // [c, 24]: kernel, output and input bounds, each 6 with sum and product.
  std::vector<float> features;
  std::vector<double> time;  // [c]: ns, without noise
  double default_time = 0;   // time with the tiling of the compiler's rule of thumb: the
                             // normalizer
};

// Draws tilings of the kernel's largest output and computes their times. Tiles that extend beyond
// the tensor are computed in full. Each iteration has an overhead, and compute and memory traffic
// overlap. A tile that does not fit into fast memory spills.
TileConfigs tile_configs(const KernelSpec& spec, const Program& kernel);

}  // namespace tpudist::synth
