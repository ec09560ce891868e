#pragma once

#include <string>
#include <string_view>

namespace tpudist {

// As one word of a POSIX shell: in single quotes, where there is something that it would take apart.
std::string shell_word(const std::string& text);
// The same, always in quotes.
std::string shell_quoted(std::string_view text);

// The command line of this process as a shell would take it, with quotes where they are needed;
// "unknown" where the system does not tell.
std::string command_line();

// The processor of this machine, such as "AMD EPYC 9R14"; "unknown" where the system does not tell.
std::string processor_name();

}  // namespace tpudist
