#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/mutex.hpp"

namespace tpudist {

// Shows the progress of a long job: on a terminal one live line with a bar, the rate and the time
// left; elsewhere a plain line at most every `plain_interval`. Libraries call only this interface;
// launch/ decides where it prints. Thread-safe. By itself, as NoProgress, it shows nothing.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // Starts a job of `total` units (0: unknown). `unit` is e.g. "graphs" or "steps"; amounts of
  // "bytes" are shown as KiB, MiB and so on. A job that starts inside another job is a part of that
  // job, and is shown in its place until the part finishes.
  virtual void start(std::string_view /*title*/, std::int64_t /*total*/,
                     std::string_view /*unit*/) {}
  // `count` more units of the innermost job are done. `note`: a number or name to show beside it.
  virtual void advance(std::int64_t /*count*/, std::string_view /*note*/ = {}) {}
  // Prints a line of information above the bar. Messages that must be seen go to the log instead.
  virtual void line(std::string_view /*text*/) {}
  // Ends the innermost job.
  virtual void finish() {}
};

using NoProgress = ProgressSink;

// Writes to a file descriptor (standard error by default); a live bar if it is a terminal. On a
// narrow terminal long notes are dropped first, then the bar, then words; percentage and time left
// stay.
class ProgressBar : public ProgressSink {
 public:
  struct Options {
    int descriptor = 2;
    int terminal = -1;  // -1: ask isatty and TERM; 0 or 1: forced, for tests
    std::chrono::milliseconds live_interval{100};
    std::chrono::milliseconds plain_interval{30000};
    std::function<std::chrono::steady_clock::time_point()> now;  // for tests
  };
  ProgressBar();
  explicit ProgressBar(Options options);
  ~ProgressBar() override;

  void start(std::string_view title, std::int64_t total, std::string_view unit) override;
  void advance(std::int64_t count, std::string_view note = {}) override;
  void line(std::string_view text) override;
  void finish() override;

 private:
  struct Job {
    std::string title, unit, note;
    std::int64_t total = 0, done = 0;
    std::chrono::steady_clock::time_point begin;
  };
  struct Pieces;

  void draw(bool force) TPUDIST_REQUIRES(mutex_);
  std::string summary(const Job& job) const;
  Pieces pieces() const TPUDIST_REQUIRES(mutex_);
  void write(std::string_view text) TPUDIST_REQUIRES(mutex_);

  Options options_;
  Mutex mutex_;
  std::vector<Job> jobs_ TPUDIST_GUARDED_BY(mutex_);  // the innermost last
  bool terminal_ = false;
  std::chrono::steady_clock::time_point drawn_ TPUDIST_GUARDED_BY(mutex_);
};

}  // namespace tpudist
