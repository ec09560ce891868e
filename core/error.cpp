#include "core/error.hpp"

#include "core/text.hpp"

namespace tpudist {
namespace {

// An error is one line, whatever the names of files and data. Only a configuration error has more
// lines, one for each mistake.
std::string told(ErrorKind kind, const std::string& message) {
  return printable(message, kind == ErrorKind::usage ? "\n\t" : "");
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(told(kind, message)), kind_(kind) {}

}  // namespace tpudist
