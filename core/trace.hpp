#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// A piece of a thread's time with a name. Spans of one thread nest, or lie behind each other.
struct TracedSpan {
  const char* name = "";            // a literal
  const char* detail = nullptr;     // what it was done for, of Trace::keep; null: nothing to say
  std::int64_t step = -1;           // of the training; -1: none
  std::int64_t unit = -1;           // of the step; -1: none
  std::int64_t begin = 0, end = 0;  // ns, as Trace::now counts
};

// The spans of one thread by their begin, the outer one first where two begin together.
struct TraceTrack {
  std::string thread;
  std::int64_t dropped = 0;  // older spans for which there was no room
  std::vector<TracedSpan> spans;
};

// Keeps what the threads of this process did when. Each thread writes into memory of its own, in
// which the newest spans replace the oldest, so that memory is bounded and no thread waits. Where
// nobody traces there is a null pointer in its place (TraceSpan).
class Trace {
 public:
  static constexpr std::size_t kSpansOfAThread = std::size_t{1} << 16;  // 3 MiB

  // `most`: spans that are kept of each thread.
  explicit Trace(std::size_t most = kSpansOfAThread);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  std::size_t most() const { return most_; }

  static std::int64_t now();  // ns of the steady clock, which processes of a machine share

  // A span of the calling thread that is over.
  void add(const TracedSpan& span);
  // What the calling thread is called; a literal.
  void name_thread(const char* name);
  // A copy of `text` that lives as long as the trace; equal texts share one. Any thread.
  const char* keep(std::string_view text);

  // All threads that have added something or were named, in the order in which they first did. To be
  // called while none of them adds.
  std::vector<TraceTrack> tracks() const;

 private:
  struct Ring;
  Ring& own_ring();

  const std::uint64_t number_;  // tells traces apart that lie at one address, one after the other
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::set<std::string, std::less<>> texts_;
};

// A span from its construction to `end` or its destruction. Without a trace, which costs a branch,
// nothing is kept. In a build with NVTX it is also a range there, for NVIDIA's Nsight Systems.
class TraceSpan {
 public:
  // `trace` may be null; `name` is a literal.
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
