#pragma once

#include <fmt/format.h>

#include <string>

#include "core/progress.hpp"

namespace tpudist {

// Passes on all progress with a label before each title and line, so that groups of ranks that work
// side by side can be told apart.
class LabelledProgress : public ProgressSink {
 public:
  // `sink` is borrowed.
  LabelledProgress(ProgressSink& sink, std::string label) : sink_(sink), label_(std::move(label)) {}

  void start(std::string_view title, std::int64_t total, std::string_view unit) override {
    sink_.start(fmt::format("{}: {}", label_, title), total, unit);
  }
  void advance(std::int64_t count, std::string_view note) override { sink_.advance(count, note); }
  void line(std::string_view text) override { sink_.line(fmt::format("{}: {}", label_, text)); }
  void finish() override { sink_.finish(); }

 private:
  ProgressSink& sink_;
  std::string label_;
};

}  // namespace tpudist
