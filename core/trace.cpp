#include "core/trace.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include <fmt/format.h>

#ifdef TPUDIST_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace tpudist {
namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> number{0};
  return ++number;
}

#ifdef TPUDIST_NVTX
void push_range(const char* name) {
  nvtxRangePushA(name);
}
void pop_range() {
  nvtxRangePop();
}
#else
void push_range(const char*) {}
void pop_range() {}
#endif

}  // namespace

// One thread writes it, without the mutex.
struct Trace::Ring {
  const char* name = nullptr;
  std::uint64_t added = 0;
  std::vector<TracedSpan> spans;  // span number i is at i modulo the limit
};

Trace::Trace(std::size_t most) : number_(next_number()), most_(std::max<std::size_t>(most, 1)) {}

Trace::~Trace() = default;

std::int64_t Trace::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Trace::Ring& Trace::own_ring() {
  thread_local std::uint64_t of = 0;
  thread_local Ring* ring = nullptr;
  if (of != number_) {
    const MutexLock lock(mutex_);
    ring = rings_.emplace_back(std::make_unique<Ring>()).get();
    of = number_;
  }
  return *ring;
}

void Trace::add(const TracedSpan& span) {
  Ring& ring = own_ring();
  if (ring.spans.size() < most_) {
    ring.spans.push_back(span);
  } else {
    ring.spans[ring.added % most_] = span;
  }
  ++ring.added;
}

void Trace::name_thread(const char* name) {
  own_ring().name = name;
}

const char* Trace::keep(std::string_view text) {
  const MutexLock lock(mutex_);
  auto kept = texts_.find(text);
  if (kept == texts_.end()) kept = texts_.emplace(text).first;
  return kept->c_str();
}

std::vector<TraceTrack> Trace::tracks() const {
  const MutexLock lock(mutex_);
  std::vector<TraceTrack> tracks;
  for (const auto& ring : rings_) {
    TraceTrack track;
    track.thread = ring->name ? ring->name : fmt::format("worker {}", tracks.size());
    track.dropped = static_cast<std::int64_t>(ring->added - ring->spans.size());
    track.spans = ring->spans;
    std::ranges::stable_sort(track.spans, [](const TracedSpan& a, const TracedSpan& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    tracks.push_back(std::move(track));
  }
  return tracks;
}

TraceSpan::TraceSpan(Trace* trace, const char* name, std::int64_t step, std::int64_t unit,
                     const char* detail)
    : trace_(trace) {
  push_range(name);
  if (trace_) span_ = {name, detail, step, unit, Trace::now(), 0};
}

void TraceSpan::end() {
  if (!open_) return;
  open_ = false;
  pop_range();
  if (!trace_) return;
  span_.end = Trace::now();
  trace_->add(span_);
}

bool has_nvtx() {
#ifdef TPUDIST_NVTX
  return true;
#else
  return false;
#endif
}

}  // namespace tpudist
