#include "core/check.hpp"

#include <fmt/format.h>

#include <system_error>

namespace tpudist {

void throw_io_error(std::string_view operation, const std::filesystem::path& path, int error_number,
                    std::source_location where) {
  throw IoError(fmt::format("cannot {} {}: {} (in {})", operation, path.string(),
                            std::generic_category().message(error_number), where.function_name()));
}

}  // namespace tpudist
