#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// `text` as one word of a POSIX shell; in single quotes where the shell would otherwise change it.
std::string shell_word(const std::string& text);
// The same, always in quotes.
std::string shell_quoted(std::string_view text);

// The command line of this process, quoted for a shell where needed; "unknown" if the system does
// not tell.
std::string command_line();

// The processor of this machine, such as "AMD EPYC 9R14"; "unknown" if the system does not tell.
std::string processor_name();

}  // namespace tpudist
