#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace tpudist {

// Shows how far a long job is. On a terminal one live line with a bar, the rate and the time left;
// elsewhere a plain line at most every `plain_interval`. The library only calls the interface;
// launch/ decides where it prints. Thread-safe.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // A new job of `total` units (0: unknown); `unit` is e.g. "graphs" or "steps".
  virtual void start(std::string_view title, std::int64_t total, std::string_view unit) = 0;
  virtual void advance(std::int64_t count, std::string_view note = {}) = 0;
  // Prints a line above the bar.
  virtual void line(std::string_view text) = 0;
  virtual void finish() = 0;
};

// Shows nothing.
class NoProgress : public ProgressSink {
 public:
  void start(std::string_view, std::int64_t, std::string_view) override {}
  void advance(std::int64_t, std::string_view) override {}
  void line(std::string_view) override {}
  void finish() override {}
};

// Writes to a file descriptor (standard error by default); a live bar if it is a terminal.
class ProgressBar : public ProgressSink {
 public:
  struct Options {
    int descriptor = 2;
    int terminal = -1;  // -1: ask isatty; 0 or 1: forced, for tests
    std::chrono::milliseconds live_interval{100};
    std::chrono::milliseconds plain_interval{10000};
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
  // With the mutex held.
  void draw(bool force);
  void end();
  std::string text() const;
  void write(std::string_view text);

  Options options_;
  std::mutex mutex_;
  std::string title_, unit_, note_;
  std::int64_t total_ = 0, done_ = 0;
  bool active_ = false, terminal_ = false;
  std::chrono::steady_clock::time_point begin_, drawn_;
};

}  // namespace tpudist
