#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tpudist {

// What a rank was doing at one moment. Plain data; other ranks read it from a file.
struct RankStatus {
  int rank = 0;  // in the job
  std::string host;
  std::int64_t process = 0;
  std::string space;            // process_space() of that process
  std::string phase;            // "training", "evaluation" and so on
  std::int64_t step = -1;       // of the phase; -1: the phase has no steps
  std::int64_t collective = 0;  // number of the last one that began, from 1; 0: none
  std::string call;             // its name
  std::int64_t bytes = 0;       // bytes that this rank sends or receives in it, the larger
  bool waiting = false;         // still in the collective
  bool patient = false;         // waits for others that may take any time
  bool failed = false;          // its work ended with an error
  std::uint64_t finished = 0;   // units, chunks, files and collectives so far
  double silent = 0;            // seconds since it last finished one, by its own clock
  std::uint64_t beat = 0;       // new for each status
};

// Lines `key value`, for people and for parse_status.
std::string to_text(const RankStatus& status);
// Nothing unless the text is one complete status; a reader may see half of a write.
std::optional<RankStatus> parse_status(std::string_view text);

// For example "training, step 12", and the rank's collective.
std::string describe(const RankStatus& status);

// Records what this rank is doing, so that a Watchdog can see whether it makes progress. Recording
// costs a few atomic stores per unit and collective. Any thread may read it at any time. Names are
// string literals.
class RankActivity {
 public:
  RankActivity() = default;
  RankActivity(const RankActivity&) = delete;
  RankActivity& operator=(const RankActivity&) = delete;

  // Starts a phase or a step of it; `step` < 0: the phase has no steps.
  void enter(const char* phase, std::int64_t step = -1);
  // Reports a finished unit, chunk or file.
  void advance() { finished_.fetch_add(1, std::memory_order_relaxed); }
  // The counter of finished work, for ThreadPool (count_finished_work).
  std::atomic<std::uint64_t>& finished() { return finished_; }
  // Reports that this rank will take part in no further collective of its run.
  void fail();
  void forget_failure() { failed_ = false; }
  // Number of the last collective before `fail`.
  std::int64_t failed_behind() const { return failed_behind_; }

  // Returns the current phase, step, collective, call, bytes, waiting, patient, failed and
  // finished; the rest keeps its defaults.
  RankStatus status() const;

  // Reports one collective call, from construction to destruction. `activity` may be null. Only one
  // at a time, in the thread that calls MPI.
  class Collective {
   public:
    // `patient`: the call waits for others that may take any time.
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
