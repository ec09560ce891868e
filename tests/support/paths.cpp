#include "tests/support/paths.hpp"

namespace tpudist::test {

std::filesystem::path source_folder() {
  return TPUDIST_SOURCE_DIR;
}

std::filesystem::path program() {
  return TPUDIST_PROGRAM;
}

}  // namespace tpudist::test
