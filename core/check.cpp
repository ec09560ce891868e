#include "core/check.hpp"

#include <fmt/format.h>

#include <system_error>

namespace tpudist {

std::string_view advice_for(int error_number) {
  const bool few_files = error_number == EMFILE || error_number == ENFILE;
  return few_files ? "; allow more open files, e.g. ulimit -n 4096" : "";
}

void throw_io_error(std::string_view operation, const std::filesystem::path& path,
                    int error_number) {
  throw IoError(fmt::format("cannot {} {}: {}{}", operation, path.string(),
                            std::generic_category().message(error_number),
                            advice_for(error_number)));
}

}  // namespace tpudist
