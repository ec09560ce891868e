#pragma once

#include <cerrno>
#include <filesystem>
#include <string_view>

#include "core/error.hpp"

namespace tpudist {

// Advice to append to the message of a system error, e.g. "; allow more open files, ..." if too
// many are open; "" without advice.
std::string_view advice_for(int error_number);

// Throws IoError "cannot OPERATION PATH: REASON" with the reason of `error_number`, and advice.
[[noreturn]] void throw_io_error(std::string_view operation, const std::filesystem::path& path,
                                 int error_number);

// Repeats a POSIX call as long as a signal interrupts it (-1 with EINTR), and returns its result.
// Not for close(2), which frees the descriptor even when a signal interrupts it.
template <typename Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result != decltype(result){-1} || errno != EINTR) return result;
  }
}

// Returns the result of a POSIX call that reports failure as -1 with errno; throws IoError on
// failure.
template <typename T>
T check_posix(T result, std::string_view operation, const std::filesystem::path& path) {
  if (result == T{-1}) throw_io_error(operation, path, errno);
  return result;
}

}  // namespace tpudist
