#include "core/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

namespace tpudist {
namespace {

std::optional<spdlog::level::level_enum> level_of(std::string_view name) {
  if (name == "trace") return spdlog::level::trace;
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "warn") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  return std::nullopt;
}

}  // namespace

void set_up_logging(int rank, int ranks) {
  auto logger =
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern(rank == 0 || ranks == 1 ? "%H:%M:%S %^%l%$ %v"
                                              : fmt::format("%H:%M:%S %^%l%$ [rank {}] %v", rank));
  const char* wanted = std::getenv("TPUDIST_LOG");
  const auto level = level_of(wanted ? wanted : "");
  logger->set_level(level.value_or(rank == 0 ? spdlog::level::info : spdlog::level::warn));
  logger->flush_on(spdlog::level::trace);
  if (wanted && *wanted && !level && rank == 0) {
    logger->warn("TPUDIST_LOG={} is none of trace, debug, info, warn, error", wanted);
  }
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace tpudist
