#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace tpudist {

// What to do about an error of the system, to be put behind its message: "; allow more open files, ..."
// for too many of them, "" for others.
std::string_view advice_for(int error_number);

// Throws IoError "cannot OPERATION PATH: REASON" with the reason of `error_number`, and advice.
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
