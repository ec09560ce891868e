#include "core/escape_glob.hpp"

namespace tpudist {

std::string escape_glob(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[')
      pattern += {'[', c, ']'};
    else
      pattern += c;
  }
  return pattern;
}

}  // namespace tpudist
