#pragma once

#include <string>

namespace tpudist {

// The name of this machine, for messages and records; "an unknown host" if the system does not
// tell.
std::string host_name();

}  // namespace tpudist
