#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace tpudist {

// Sets up the process's logger (spdlog's default logger, on standard error): rank 0 logs from
// `info` on, the other ranks from `warn` on and with their rank in front. `TPUDIST_LOG` (trace,
// debug, info, warn, error) overrides both.
void set_up_logging(int rank, int ranks);

}  // namespace tpudist
