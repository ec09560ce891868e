#pragma once

#include <cstdint>

namespace tpudist {

// Largest resident set of this process so far (VmHWM), in bytes.
std::uint64_t peak_resident_bytes();
// Resident set of this process now (VmRSS), in bytes; 0 where the system does not tell.
std::uint64_t current_resident_bytes();

}  // namespace tpudist
