#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/text.hpp"
#include "launch/program/command_line.hpp"

// Formats a path as printable(), so that a path in a table stays in its line.
template <>
struct fmt::formatter<std::filesystem::path> : fmt::formatter<std::string_view> {
  auto format(const std::filesystem::path& path, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(tpudist::printable(path.string()), context);
  }
};

namespace tpudist {

// Prints results to standard output at once, as printable() with lines and tabs. A failure, such as
// a full disk or a closed pipe, is kept for `finish_output` so that the job continues. Nothing is
// printed after a failure.
void print_text(std::string_view text);

// Prints to standard error. A failure is ignored: there is no other place to report it.
void print_error_text(std::string_view text) noexcept;

// Prints "next: COMMAND" to standard error, unless --quiet is given.
void print_next(std::string_view command);

template <typename... T>
void print(fmt::format_string<T...> format, T&&... values) {
  print_text(fmt::format(format, std::forward<T>(values)...));
}

// Prints nlohmann's JSON, indented, in ASCII: other characters become escapes.
template <typename Json>
void print_json(const Json& json, int indent = 1) {
  print_text(json.dump(indent, ' ', true, Json::error_handler_t::replace) + "\n");
}

// Call first in a program. Makes writing to a closed pipe, or beyond the largest size of files
// (ulimit -f), an error instead of a signal that ends the process. Also opens closed standard
// streams, so that no other file gets their numbers and then receives printed results.
void prepare_standard_streams();

// Flushes standard output for libraries that have printed, and returns the exit code of the
// program: `exit_code`, or 1 with a message if `exit_code` is 0 and a write failed. A closed pipe
// (`| head`) is no error.
int finish_output(int exit_code);

// The output of a command on standard error while it works: progress, unless --quiet is given, and
// log lines above the progress. One object at a time.
class Display {
 public:
  // `shown`: false on ranks other than 0, which show no progress.
  explicit Display(bool shown = true);

  ProgressSink& progress() { return *progress_; }

 private:
  std::unique_ptr<ProgressSink> progress_;
  std::optional<LogAboveProgress> above_;
};

// Adds --quiet and --verbose to every command that the program has so far.
void add_verbosity_options(Command program);

}  // namespace tpudist
