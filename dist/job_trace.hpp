#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/trace.hpp"
#include "dist/clock_offset.hpp"
#include "dist/communicator.hpp"

namespace tpudist {

// The trace of a job: what each thread of each rank did when, on the clock of rank 0.
class JobTrace {
 public:
  // Collective: compares the clocks. The calling thread is named "main".
  explicit JobTrace(Communicator& world, std::size_t spans_of_a_thread = Trace::kSpansOfAThread);

  Trace& trace() { return trace_; }

  // Writes one file in Chrome's trace format ("Trace Event Format", JSON object form), which
  // ui.perfetto.dev opens: a process for each rank, a track for each thread, times in microseconds
  // since the start of the trace. Collective, while nobody traces. The file appears whole or not at
  // all; what was dropped for want of room stands in the name of its track, and a warning says so.
  // One rank's text at a time is in the memory of rank 0. Throws IoError on all ranks.
  void write(Communicator& world, const std::filesystem::path& path) const;

 private:
  Trace trace_;
  std::int64_t start_ = 0;  // ns of rank 0's clock
  ClockOffset clock_;
};

// Numbers of a rank as a process and of its threads, in the order of their tracks. Perfetto takes the
// number of a thread for one of the whole machine, 0 for the idle one, and the thread that is numbered as
// its process for the main one.
constexpr std::int64_t traced_process(int rank) {
  return std::int64_t{10'000} * (rank + 1);
}
constexpr std::int64_t traced_thread(int rank, std::size_t track) {
  return traced_process(rank) + static_cast<std::int64_t>(track);
}

// The events of one rank, separated by commas and line ends. `start`: of the trace, on rank 0's
// clock.
std::string trace_events(const std::vector<TraceTrack>& tracks, int rank, const std::string& host,
                         std::int64_t start, const ClockOffset& clock);

}  // namespace tpudist
