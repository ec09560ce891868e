#include "models/kernels/cpu_blocks.hpp"

namespace tpudist {

float* block_scratch(int slot, std::int64_t floats) {
  thread_local AlignedFloats scratch[2];
  if (static_cast<std::int64_t>(scratch[slot].size()) < floats)
    scratch[slot] = AlignedFloats(floats);
  return scratch[slot].data();
}

}  // namespace tpudist
