#pragma once

#include <string>

#include "launch/command_line.hpp"

namespace tpudist {

// The manual page of a command and all commands below it, in the macros of man(7). `path` is what a
// user types, "tpudist train". The page of the program itself lists its commands.
std::string man_page(const CommandText& command, const std::string& path);

// The name of that page without its section: "tpudist-train".
std::string man_page_name(const std::string& path);

}  // namespace tpudist
