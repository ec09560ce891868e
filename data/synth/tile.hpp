#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/synth/program.hpp"

namespace tpudist::synth {

// One small kernel to be made: what a fusion of a model computes.
struct KernelSpec {
  std::string name;
  std::int64_t nodes = 40;     // exact; at least 2
  std::int64_t configs = 100;  // at most; fewer where the tensor has fewer tilings
  std::uint64_t key = 0;       // shapes, kind and configurations are drawn from it
};

// Tile sizes of one kernel, and how long it takes with them.
struct TileConfigs {
  std::vector<float>
      features;  // [c, 24]: kernel, output and input bounds, each 6 with sum and product
  std::vector<double> time;  // [c]: ns, without noise
  double default_time = 0;  // of the tiling that the compiler's rule of thumb picks: the normalizer
};

// The kernel's operations: parameters, broadcasts and elementwise operations around possibly one
// convolution, dot or reduction, and the fusion as root.
Program build_kernel(const KernelSpec& spec);

// Draws tilings of the kernel's largest output, and times them: whole tiles that stick out of the
// tensor are computed too, each iteration has an overhead, compute and memory traffic overlap, and
// a tile that does not fit into fast memory spills.
TileConfigs tile_configs(const KernelSpec& spec, const Program& kernel);

}  // namespace tpudist::synth
