#pragma once

#include <string>

#include "launch/command_line.hpp"

namespace tpudist {

// Scripts that let a shell complete the commands, options and fixed values of a program; files where
// nothing else is asked for.
std::string bash_completion(const CommandText& program);
std::string zsh_completion(const CommandText& program);
std::string fish_completion(const CommandText& program);

}  // namespace tpudist
