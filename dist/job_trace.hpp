#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/trace.hpp"
#include "dist/clock_offset.hpp"
#include "dist/communicator.hpp"

namespace tpudist {

// The trace of a job: what each thread of each rank did and when, on the clock of rank 0.
class JobTrace {
 public:
  // Collective: compares the clocks. Names the calling thread "main".
  explicit JobTrace(Communicator& world, std::size_t spans_of_a_thread = Trace::kSpansOfAThread);

  Trace& trace() { return trace_; }

  // Writes one file in Chrome's trace format ("Trace Event Format", JSON object form), which
  // ui.perfetto.dev opens. Each rank is a process and each thread a track; times are microseconds
  // since the start of the trace. Collective, while nobody adds spans. The file is written whole or
  // not at all. Where spans were dropped for lack of room, the track's name and a warning say so.
  // Rank 0 holds the text of one rank at a time. Throws IoError on all ranks.
  void write(Communicator& world, const std::filesystem::path& path) const;

 private:
  Trace trace_;
  std::int64_t start_ = 0;  // ns of rank 0's clock
  ClockOffset clock_;
};

// Process number of a rank, and thread number of a track. Perfetto treats thread numbers as unique
// in the whole machine, 0 as the idle thread, and the thread whose number equals its process as the
// main thread.
constexpr std::int64_t traced_process(int rank) {
  return std::int64_t{10'000} * (rank + 1);
}
constexpr std::int64_t traced_thread(int rank, std::size_t track) {
  return traced_process(rank) + static_cast<std::int64_t>(track);
}

// The events of one rank, separated by commas and newlines. `start`: begin of the trace on rank 0's
// clock, in ns.
std::string trace_events(const std::vector<TraceTrack>& tracks, int rank, const std::string& host,
                         std::int64_t start, const ClockOffset& clock);

}  // namespace tpudist
