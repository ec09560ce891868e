#include "core/host_name.hpp"

#include <unistd.h>

#include <array>

namespace tpudist {

std::string host_name() {
  std::array<char, 256> buffer{};
  return ::gethostname(buffer.data(), buffer.size() - 1) == 0 ? buffer.data() : "an unknown host";
}

}  // namespace tpudist
