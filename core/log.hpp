#pragma once

#include <spdlog/spdlog.h>

namespace tpudist {

class ProgressSink;

// Sets up the process's logger (spdlog's default logger, on standard error): rank 0 logs from
// `info` on, the other ranks from `warn` on and with their rank in front. `TPUDIST_LOG` (trace,
// debug, info, warn, error) overrides both, and set_verbosity overrides that.
void set_up_logging(int rank, int ranks);

// How much a program says beside its results: quiet logs from `warn` on and shows no progress,
// verbose logs from `debug` on.
enum class Verbosity { quiet, normal, verbose };

// For the whole process: of the logger that is set up, and of those set up later.
void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

// While it lives, the default logger's lines go to `progress`, so that they stand above its live
// bar and do not run into it. Make it after `set_up_logging`, and one at a time.
class LogAboveProgress {
 public:
  explicit LogAboveProgress(ProgressSink& progress);
  ~LogAboveProgress();
  LogAboveProgress(const LogAboveProgress&) = delete;
  LogAboveProgress& operator=(const LogAboveProgress&) = delete;
};

}  // namespace tpudist
