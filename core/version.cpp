#include "core/version.hpp"

#ifndef TPUDIST_VERSION  // the build defines it
#define TPUDIST_VERSION "unknown"
#endif

namespace tpudist {

std::string_view version() {
  return TPUDIST_VERSION;
}

}  // namespace tpudist
