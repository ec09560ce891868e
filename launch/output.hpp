#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace tpudist {

// Prints to standard output, where results go, at once. A failure is kept for `finish_output`, so that
// a full disk or a reader that has left does not cut a job short; nothing is printed after it.
void print_text(std::string_view text);

// Prints to standard error. What cannot be written is lost: there is no other place to say so.
void print_error_text(std::string_view text) noexcept;

template <typename... T>
void print(fmt::format_string<T...> format, T&&... values) {
  print_text(fmt::format(format, std::forward<T>(values)...));
}

// To be called before anything else of a program: makes a closed pipe an error of writing instead of
// a signal that ends the process, and keeps the numbers of standard streams that are closed from
// being given to files, into which results would then be printed.
void prepare_standard_streams();

// Flushes what libraries have printed to standard output, and returns the exit code of the program: `exit_code`, or 1 with a message
// where that is 0 and something could not be written. That nobody reads any more (`| head`) is no
// error.
int finish_output(int exit_code);

}  // namespace tpudist
