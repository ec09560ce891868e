#include "core/check.hpp"

#include <fmt/format.h>

#include <system_error>

namespace tpudist {

void throw_io_error(std::string_view operation, const std::filesystem::path& path,
                    int error_number) {
  const char* advice = error_number == EMFILE || error_number == ENFILE
                           ? "; allow more open files, e.g. ulimit -n 4096"
                           : "";
  throw IoError(fmt::format("cannot {} {}: {}{}", operation, path.string(),
                            std::generic_category().message(error_number), advice));
}

}  // namespace tpudist
