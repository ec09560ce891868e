#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/mutex.hpp"

namespace tpudist {

// A named interval of a thread's time. Two spans of one thread are nested or do not overlap.
struct TracedSpan {
  const char* name = "";            // a string literal
  const char* detail = nullptr;     // what it worked on, from Trace::keep; null: not given
  std::int64_t step = -1;           // training step; -1: none
  std::int64_t unit = -1;           // number of the unit in the step; -1: none
  std::int64_t begin = 0, end = 0;  // ns, as Trace::now counts
};

// The spans of one thread, sorted by their begin; if two begin together, the outer span is first.
struct TraceTrack {
  std::string thread;
  std::int64_t dropped = 0;  // older spans that were overwritten
  std::vector<TracedSpan> spans;
};

// Records what the threads of this process do and when. Each thread writes into its own ring, in
// which the newest spans replace the oldest, so memory is bounded and no thread waits. Without
// tracing, the pointer to the trace is null (see TraceSpan).
class Trace {
 public:
  static constexpr std::size_t kSpansOfAThread = std::size_t{1} << 16;  // 3 MiB

  // `most`: spans to keep per thread.
  explicit Trace(std::size_t most = kSpansOfAThread);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  std::size_t most() const { return most_; }

  static std::int64_t now();  // ns of the steady clock, which processes of a machine share

  // Adds a finished span of the calling thread.
  void add(const TracedSpan& span);
  // Sets the name of the calling thread; a string literal.
  void name_thread(const char* name);
  // Returns a copy of `text` that lives as long as the trace; equal texts share one. Any thread.
  const char* keep(std::string_view text);

  // All threads that have added a span or a name, in the order of their first call. Call it while
  // no thread adds.
  std::vector<TraceTrack> tracks() const;

 private:
  struct Ring;
  Ring& own_ring();

  const std::uint64_t number_;  // distinguishes traces that have had the same address
  const std::size_t most_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Ring>> rings_ TPUDIST_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> texts_ TPUDIST_GUARDED_BY(mutex_);
};

// A span from its construction to `end` or its destruction. Without a trace it records nothing and
// costs one branch. In a build with NVTX the span is also an NVTX range, for NVIDIA's Nsight
// Systems.
class TraceSpan {
 public:
  // `trace` may be null; `name` is a string literal.
  TraceSpan(Trace* trace, const char* name, std::int64_t step = -1, std::int64_t unit = -1,
            const char* detail = nullptr);
  ~TraceSpan() { end(); }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  void end();

 private:
  Trace* trace_;
  bool open_ = true;
  TracedSpan span_;
};

// Whether this build has NVTX ranges.
bool has_nvtx();

}  // namespace tpudist
