#include "core/error.hpp"

#include <algorithm>

namespace tpudist {
namespace {

// An error of data is one line, whatever names the data have. One of a configuration may have several:
// it lists all mistakes.
std::string told(ErrorKind kind, std::string message) {
  if (kind == ErrorKind::data) {
    std::ranges::replace_if(
        message, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  }
  return message;
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(told(kind, message)), kind_(kind) {}

}  // namespace tpudist
