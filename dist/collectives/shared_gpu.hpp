#pragma once

#include <cstdlib>

namespace tpudist {

// For checks on a machine with one GPU (scripts/gpu_check.sh): ranks that find no GPU left share
// one, if TPUDIST_TEST_ONLY_SHARE_GPU is set in all of them. NCCL takes such ranks only if each has
// an NCCL_HOSTID of its own.
inline bool ranks_share_gpu() {
  return std::getenv("TPUDIST_TEST_ONLY_SHARE_GPU") != nullptr;
}

}  // namespace tpudist
