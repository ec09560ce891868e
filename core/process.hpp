#pragma once

#include <string>

namespace tpudist {

// The command line of this process as a shell would take it, with quotes where they are needed;
// "unknown" where the system does not tell.
std::string command_line();

// The processor of this machine, such as "AMD EPYC 9R14"; "unknown" where the system does not tell.
std::string processor_name();

}  // namespace tpudist
