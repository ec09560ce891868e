#pragma once

#include <string>

#include "launch/command_line.hpp"

namespace tpudist {

// The manual page, in the macros of man(7), of a command with all commands below it; `path` is what a user
// types for it, "tpudist train". The page of the program itself lists its commands.
std::string man_page(const CommandText& command, const std::string& path);

// The name of that page without its section: "tpudist-train".
std::string man_page_name(const std::string& path);

}  // namespace tpudist
