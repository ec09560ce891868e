#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dist/health/job_trace.hpp"

namespace tpudist::test {

// The content of a file in Chrome's trace format, by rank and track.
struct ChromeTrace {
  struct Span {
    std::string name;
    std::int64_t begin = 0, end = 0;  // ns
    nlohmann::json args;
  };
  std::map<int, std::string> processes;  // by rank
  std::map<std::pair<int, int>, std::string> threads;
  std::map<std::pair<int, int>, std::vector<Span>> spans;

  std::set<std::string> names(int rank) const {
    std::set<std::string> names;
    for (const auto& [track, list] : spans) {
      if (track.first != rank) continue;
      for (const Span& span : list) names.insert(span.name);
    }
    return names;
  }
};

// Expects spans of a thread that begin in order, each within the span in which it begins.
inline void expect_nested(const std::vector<ChromeTrace::Span>& spans) {
  std::vector<ChromeTrace::Span> open;
  std::int64_t before = INT64_MIN;
  for (const ChromeTrace::Span& span : spans) {
    EXPECT_GE(span.begin, before) << span.name;
    EXPECT_LE(span.begin, span.end) << span.name;
    before = span.begin;
    while (!open.empty() && open.back().end <= span.begin) open.pop_back();
    if (!open.empty())
      EXPECT_LE(span.end, open.back().end) << span.name << " in " << open.back().name;
    open.push_back(span);
  }
}

// Rank and track of an event. Some readers identify a track by the number of the thread alone.
inline std::pair<int, int> track_of(const nlohmann::json& event) {
  const auto process = event.at("pid").get<std::int64_t>(),
             thread = event.at("tid").get<std::int64_t>();
  const int rank = static_cast<int>(process / traced_process(0)) - 1;
  EXPECT_EQ(process, traced_process(rank));
  EXPECT_GE(thread, process);
  EXPECT_LT(thread, traced_process(rank + 1));
  return {rank, static_cast<int>(thread - process)};
}

// Reads a trace and checks what readers of the format rely on ("Trace Event Format": JSON object
// form, complete events X and metadata M): names and numbers where they belong, every track with a
// name, in order and nested.
inline ChromeTrace read_chrome_trace(const std::string& text) {
  ChromeTrace trace;
  const auto file = nlohmann::json::parse(text);
  for (const nlohmann::json& event : file.at("traceEvents")) {
    const auto kind = event.at("ph").get<std::string>();
    const auto name = event.at("name").get<std::string>();
    const std::pair track = track_of(event);
    if (kind == "M") {
      const nlohmann::json& args = event.at("args");
      if (name == "process_name") trace.processes[track.first] = args.at("name");
      if (name == "thread_name") trace.threads[track] = args.at("name");
      continue;
    }
    EXPECT_EQ(kind, "X");
    const auto ns = [&](const char* key) {
      return static_cast<std::int64_t>(std::llround(1e3 * event.at(key).get<double>()));
    };
    trace.spans[track].push_back({name, ns("ts"), ns("ts") + ns("dur"), event.at("args")});
  }
  for (const auto& [track, spans] : trace.spans) {
    EXPECT_TRUE(trace.threads.contains(track));
    EXPECT_TRUE(trace.processes.contains(track.first));
    EXPECT_GE(spans.front().begin, 0);
    expect_nested(spans);
  }
  return trace;
}

}  // namespace tpudist::test
