#pragma once

#include <cstdint>
#include <vector>

#include "data/synth/kernel.hpp"
#include "data/synth/program.hpp"

namespace tpudist::synth {

// Tile sizes of one kernel, and the run time with each.
struct TileConfigs {
  // [c, 24]: kernel, output and input bounds, each 6 with sum and product.
  std::vector<float> features;
  std::vector<double> time;  // [c]: ns, without noise
  double default_time = 0;   // time of the tiling that the compiler's rule of thumb picks: the
                             // normalizer
};

// Draws tilings of the kernel's largest output and computes their times. Tiles that extend beyond
// the tensor are computed in full. Each iteration has an overhead, and compute and memory traffic
// overlap. A tile that does not fit into fast memory spills.
TileConfigs tile_configs(const KernelSpec& spec, const Program& kernel);

}  // namespace tpudist::synth
