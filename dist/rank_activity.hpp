#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tpudist {

// What a rank was doing when it was asked. Plain data; what other ranks read of it in a file.
struct RankStatus {
  int rank = 0;  // in the job
  std::string host;
  std::int64_t process = 0;
  std::string space;            // process_space() of that process
  std::string phase;            // "training", "evaluation" and so on
  std::int64_t step = -1;       // of the phase; -1: it has none
  std::int64_t collective = 0;  // number of the last one that was begun, from 1; 0: none
  std::string call;             // its name
  std::int64_t bytes = 0;       // that this rank gives or receives in it, whichever is more
  bool waiting = false;         // still in it
  bool patient = false;         // waits for others that may take as long as they like
  bool failed = false;          // its work ended with an error
  std::uint64_t finished = 0;   // units, chunks, files and collectives so far
  double silent = 0;            // seconds since the last of these, by this rank's own clock
  std::uint64_t beat = 0;       // differs from one time of asking to the next
};

// A few lines of text, `key value` each, for people and for parse_place.
std::string to_text(const RankStatus& place);
// Nothing where the text is not that of one place as a whole, as when it is read while it is written.
std::optional<RankStatus> parse_place(std::string_view text);

// "training, step 12" and the like, and where the rank waits.
std::string describe(const RankStatus& place);

// Says what this rank is doing, so that a Watchdog can see whether it gets on. Written by the
// threads that work, at the cost of a few atomic stores for each unit and each collective; read by
// any thread at any time. Names are literals: they live as long as the process.
class RankActivity {
 public:
  RankActivity() = default;
  RankActivity(const RankActivity&) = delete;
  RankActivity& operator=(const RankActivity&) = delete;

  // What follows; `step` < 0: the phase has no steps.
  void enter(const char* phase, std::int64_t step = -1);
  // A unit, a chunk or a file is finished.
  void advance() { finished_.fetch_add(1, std::memory_order_relaxed); }
  // What a ThreadPool counts its finished work in.
  std::atomic<std::uint64_t>& finished() { return finished_; }
  // This rank takes part in no further collective of its run.
  void fail();
  void forget_failure() { failed_ = false; }
  // The last collective before `fail`.
  std::int64_t failed_behind() const { return failed_behind_; }

  // phase, step, collective, call, bytes, waiting, patient, failed and finished are filled in.
  RankStatus place() const;

  // One collective call, from its construction to its destruction. `activity` may be null. One at a
  // time, in the thread that calls MPI.
  class Collective {
   public:
    // `patient`: for others, who may take as long as they like.
    Collective(RankActivity* activity, const char* call, std::size_t bytes, bool patient = false);
    ~Collective();
    Collective(const Collective&) = delete;
    Collective& operator=(const Collective&) = delete;

   private:
    RankActivity* activity_;
  };

 private:
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<const char*> phase_{"start"};
  std::atomic<std::int64_t> step_{-1};
  std::atomic<const char*> call_{""};
  std::atomic<std::int64_t> bytes_{0}, collective_{0}, failed_behind_{0};
  std::atomic<bool> waiting_{false}, patient_{false}, failed_{false};
};

}  // namespace tpudist
