#pragma once

#include <string>

#include "launch/command_line.hpp"

namespace tpudist {

// Scripts for completing commands, options and fixed values in a shell; file names where nothing
// else is expected.
std::string bash_completion(const CommandText& program);
std::string zsh_completion(const CommandText& program);
std::string fish_completion(const CommandText& program);

}  // namespace tpudist
