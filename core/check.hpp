#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace tpudist {

// Throws IoError "cannot OPERATION PATH: REASON" with the reason of `error_number`.
[[noreturn]] void throw_io_error(std::string_view operation, const std::filesystem::path& path,
                                 int error_number);

// The result of a POSIX call that reports failure as -1 with errno, called again for as long as a
// signal interrupts it. Not for close(2), after which the descriptor is gone in any case.
template <typename Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result != decltype(result){-1} || errno != EINTR) return result;
  }
}

// Passes on the result of a POSIX call that reports failure as -1 with errno; throws IoError then.
template <typename T>
T check_posix(T result, std::string_view operation, const std::filesystem::path& path) {
  if (result == T{-1}) throw_io_error(operation, path, errno);
  return result;
}

}  // namespace tpudist
