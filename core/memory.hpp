#pragma once

#include <cstdint>

namespace tpudist {

// Largest resident set of this process so far (VmHWM), in bytes.
std::uint64_t peak_resident_bytes();

}  // namespace tpudist
