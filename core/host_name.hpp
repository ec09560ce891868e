#pragma once

#include <string>

namespace tpudist {

// The name of this machine, for messages and records; "an unknown host" where the system tells none.
std::string host_name();

}  // namespace tpudist
