#include "core/error.hpp"

namespace tpudist {

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(message), kind_(kind) {}

}  // namespace tpudist
