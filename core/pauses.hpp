#pragma once

#include <algorithm>
#include <chrono>

namespace tpudist {

// The pause of a thread that has waited so long for a device or another process, before it looks
// again: none for the first 50 us, so that it misses little of a short wait, then a half of the
// wait so far, at most `longest`.
inline std::chrono::nanoseconds pause_after(std::chrono::nanoseconds waited,
                                            std::chrono::nanoseconds longest) {
  return waited < std::chrono::microseconds(50) ? longest.zero() : std::min(waited / 2, longest);
}

}  // namespace tpudist
