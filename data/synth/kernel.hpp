#pragma once

#include <cstdint>
#include <string>

#include "data/synth/program.hpp"

namespace tpudist::synth {

// One small kernel to make: the computation of one fusion of a model.
struct KernelSpec {
  std::string name;
  std::int64_t nodes = 40;     // exact; at least 2
  std::int64_t configs = 100;  // upper limit; fewer where the tensor has fewer tilings
  std::uint64_t key = 0;       // determines shapes, kind and configurations
};

// The kernel's operations: parameters, broadcasts and elementwise operations, perhaps around one
// convolution, dot or reduction, and the fusion as root.
Program build_kernel(const KernelSpec& spec);

}  // namespace tpudist::synth
