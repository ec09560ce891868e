#pragma once

#include <cstdint>
#include <string>

#include "data/synth/program.hpp"

namespace tpudist::synth {

// One small kernel to be made: what a fusion of a model computes.
struct KernelSpec {
  std::string name;
  std::int64_t nodes = 40;     // exact; at least 2
  std::int64_t configs = 100;  // at most; fewer where the tensor has fewer tilings
  std::uint64_t key = 0;       // shapes, kind and configurations are drawn from it
};

// The kernel's operations: parameters, broadcasts and elementwise operations around possibly one
// convolution, dot or reduction, and the fusion as root.
Program build_kernel(const KernelSpec& spec);

}  // namespace tpudist::synth
