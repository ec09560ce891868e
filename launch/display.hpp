#pragma once

#include <memory>
#include <optional>

#include "core/log.hpp"
#include "core/progress.hpp"
#include "launch/command_line.hpp"

namespace tpudist {

// The output of a command on standard error while it works: progress, unless --quiet is given, and
// log lines above it. One at a time.
class Display {
 public:
  // `shown`: false on ranks other than 0, which show no progress.
  explicit Display(bool shown = true);

  ProgressSink& progress() { return *progress_; }

 private:
  std::unique_ptr<ProgressSink> progress_;
  std::optional<LogAboveProgress> above_;
};

// Adds --quiet and --verbose to every command of the program. Call it when all commands have been
// added.
void add_verbosity_options(Command program);

}  // namespace tpudist
