#include "core/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/mutex.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

std::optional<spdlog::level::level_enum> level_of(std::string_view name) {
  constexpr std::string_view kNames[] = {"trace", "debug", "info", "warn", "error"};
  const auto at = std::ranges::find(kNames, name) - std::begin(kNames);
  if (at == std::ssize(kNames)) return std::nullopt;
  return static_cast<spdlog::level::level_enum>(at);  // spdlog has the same order
}

// Writes each message as one line to standard error, or to a progress bar while there is one.
class LogSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void redirect(ProgressSink* progress) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& given) override {
    const std::string_view text(given.payload.data(), given.payload.size());
    const std::string plain = printable(join(split(text, '\n'), "; "));
    spdlog::details::log_msg message = given;
    message.payload = plain;
    if (!progress_) return standard_error_.log(message);
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    progress_->line(trim({line.data(), line.size()}));
  }

  void flush_() override { standard_error_.flush(); }

  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    standard_error_.set_formatter(formatter->clone());
    formatter_ = std::move(formatter);
  }

 private:
  spdlog::sinks::stderr_color_sink_st standard_error_;
  ProgressSink* progress_ = nullptr;  // guarded by the mutex of base_sink
};

// The verbosity of --quiet or --verbose; it overrides the environment.
std::optional<Verbosity>& asked_verbosity() {
  static std::optional<Verbosity> asked;
  return asked;
}

spdlog::level::level_enum wanted_level(int rank) {
  const auto asked = asked_verbosity();
  if (asked == Verbosity::quiet) return spdlog::level::warn;
  if (asked == Verbosity::verbose) return spdlog::level::debug;
  const char* wanted = std::getenv("TPUDIST_LOG");
  const auto usual = rank == 0 ? spdlog::level::info : spdlog::level::warn;
  return level_of(wanted ? wanted : "").value_or(usual);
}

// The sink of the default logger, if set_up_logging made it.
LogSink* current_sink() {
  const auto& sinks = spdlog::default_logger()->sinks();
  return sinks.empty() ? nullptr : dynamic_cast<LogSink*>(sinks[0].get());
}

}  // namespace

void set_up_logging(int rank, int ranks) {
  auto logger = std::make_shared<spdlog::logger>("", std::make_shared<LogSink>());
  logger->set_pattern(rank == 0 || ranks == 1 ? "%H:%M:%S %^%l%$ %v"
                                              : fmt::format("%H:%M:%S %^%l%$ [rank {}] %v", rank));
  logger->set_level(wanted_level(rank));
  logger->flush_on(spdlog::level::trace);
  const char* wanted = std::getenv("TPUDIST_LOG");
  static bool told = false;  // a program sets up its log again when it knows its ranks
  if (wanted && *wanted && !level_of(wanted) && rank == 0 && !std::exchange(told, true)) {
    logger->warn("TPUDIST_LOG={} is none of trace, debug, info, warn, error", wanted);
  }
  spdlog::set_default_logger(std::move(logger));
}

void set_verbosity(Verbosity verbosity) {
  asked_verbosity() = verbosity;
  spdlog::default_logger()->set_level(wanted_level(0));
}

Verbosity verbosity() {
  return asked_verbosity().value_or(Verbosity::normal);
}

LogAboveProgress::LogAboveProgress(ProgressSink& progress) {
  if (LogSink* sink = current_sink()) sink->redirect(&progress);
}

LogAboveProgress::~LogAboveProgress() {
  if (LogSink* sink = current_sink()) sink->redirect(nullptr);
}

void warn_once(const std::string& text) {
  static Mutex mutex;
  static std::set<std::string> told TPUDIST_GUARDED_BY(mutex);
  {
    const MutexLock lock(mutex);
    if (!told.insert(text).second) return;
  }
  spdlog::warn("{}", text);
}

}  // namespace tpudist
