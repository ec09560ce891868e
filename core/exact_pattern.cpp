#include "core/exact_pattern.hpp"

namespace tpudist {

std::string exact_pattern(std::string_view text) {
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
