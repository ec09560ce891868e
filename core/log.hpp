#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "core/progress.hpp"

namespace tpudist {

// Sets up the process's logger (spdlog's default logger, on standard error). Rank 0 logs from
// `info` on; the other ranks from `warn` on, with their rank in front. `TPUDIST_LOG` (trace, debug,
// info, warn, error) overrides both, and set_verbosity overrides that.
void set_up_logging(int rank, int ranks);

// How much a program prints beside its results. quiet: logs from `warn` on, no progress bar;
// verbose: logs from `debug` on.
enum class Verbosity { quiet, normal, verbose };

// For the whole process: the current logger and loggers that are set up later.
void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

// Sends the default logger's lines through `progress` while this object lives, so that they appear
// above the live bar. Create it after `set_up_logging`, and only one at a time.
class LogAboveProgress {
 public:
  explicit LogAboveProgress(ProgressSink& progress);
  ~LogAboveProgress();
  LogAboveProgress(const LogAboveProgress&) = delete;
  LogAboveProgress& operator=(const LogAboveProgress&) = delete;
};

// Logs a warning unless this process has logged the same text before. Any thread.
void warn_once(const std::string& text);

}  // namespace tpudist
