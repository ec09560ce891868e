#include "core/error.hpp"

#include "core/escape.hpp"

namespace tpudist {
namespace {

// An error is one line, whatever names the files and the data have. One of a configuration may have
// several: it lists all mistakes.
std::string told(ErrorKind kind, const std::string& message) {
  return printable(message, kind == ErrorKind::usage ? "\n\t" : "");
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(told(kind, message)), kind_(kind) {}

}  // namespace tpudist
