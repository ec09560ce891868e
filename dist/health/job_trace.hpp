#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "core/trace.hpp"
#include "dist/collectives/communicator.hpp"

namespace tpudist {

// The offset of this rank's clock from rank 0's clock.
struct ClockOffset {
  std::int64_t offset = 0;  // ns to subtract from this rank's times; 0 on rank 0
  std::int64_t error = 0;   // ns; the true offset is at most this far away
};

// The offset within these bounds, in ns: 0 if they allow it, since ranks of one node share a clock;
// otherwise the middle.
ClockOffset offset_within(std::int64_t lower, std::int64_t upper);

// Compares the clocks of all ranks in a few dozen small exchanges. No rank leaves an all_gather
// before every rank has entered it. If b is the time before and a the time after it, each round
// gives b[r] - a[0] <= offset of r <= a[r] - b[0]; the narrowest bounds win. `now`: this rank's
// clock in ns. Collective. Host memory.
ClockOffset measure_clock_offset(Communicator& world, const std::function<std::int64_t()>& now);

// The trace of a job: what each thread of each rank did and when, on the clock of rank 0.
class JobTrace {
 public:
  // Collective: compares the clocks. Names the calling thread "main".
  explicit JobTrace(Communicator& world, std::size_t spans_of_a_thread = Trace::kSpansOfAThread);

  Trace& trace() { return trace_; }

  // Writes one file in Chrome's trace format ("Trace Event Format", JSON object form), which
  // ui.perfetto.dev opens. Each rank is a process, each thread a track; times are microseconds
  // since the start of the trace. The file is written whole or not at all. If spans were dropped
  // for lack of room, the track's name and a warning say so. Collective, while no thread adds
  // spans. Rank 0 holds the text of one rank at a time. Throws IoError on all ranks.
  void write(Communicator& world, const std::filesystem::path& path) const;

 private:
  Trace trace_;
  std::int64_t start_ = 0;  // ns of rank 0's clock
  ClockOffset clock_;
};

// The process number of a rank, and the thread number of a track. Perfetto takes thread numbers as
// unique in the whole machine, 0 as the idle thread, and the thread whose number equals its process
// as the main thread.
constexpr std::int64_t traced_process(int rank) {
  return std::int64_t{10'000} * (rank + 1);
}
constexpr std::int64_t traced_thread(int rank, std::size_t track) {
  return traced_process(rank) + static_cast<std::int64_t>(track);
}

// The events of one rank, separated by commas and newlines. `start`: begin of the trace in ns of
// rank 0's clock.
std::string trace_events(const std::vector<TraceTrack>& tracks, int rank, const std::string& host,
                         std::int64_t start, const ClockOffset& clock);

}  // namespace tpudist
