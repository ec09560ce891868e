#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dist/rank_activity.hpp"
#include "dist/rank_files.hpp"
#include "dist/rank_silence.hpp"

namespace tpudist {

// Exit code of a process that its watchdog ended.
inline constexpr int kHungExitCode = 86;

struct WatchdogOptions {
  double timeout = 600;     // seconds in which something must be finished; 0: nobody watches
  int rank = 0, ranks = 1;  // in the job
  // Ends the process; by default with `_exit`. For tests.
  std::function<void(const std::string& report)> end = {};
};

// Ends a process that hangs. A thread looks at an activity, at least forty times within the timeout,
// and where no rank has finished anything for that long, it prints where this rank is and which ranks
// the others wait for, and ends the process with kHungExitCode, without a word to MPI: mpirun, or srun
// with --kill-on-bad-exit, then ends the other ranks. Long before that it warns. A second thread
// exchanges with the other ranks, in files, where each of them is: as long as any gets on, nobody
// hangs. While there are no files, or the disk does not answer, this rank's own activity counts.
//
// A rank that waits in a collective for one that will not come is ended at once. That is one whose
// process on the same machine has ended. Once a StopSignal was heard, it is also one that does not
// answer. srun
// ends the ranks that are left by a SIGTERM, which asks for a checkpoint, and kills them only when
// Slurm's KillWait is over.
//
// Thread-safe, but for `watch` and `leave`, which are called by the thread that calls MPI.
class Watchdog {
 public:
  // `activity` is borrowed.
  Watchdog(RankActivity& activity, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  RankActivity& activity() { return activity_; }

  // From here on until `leave` this rank is number `rank` of the `ranks` ranks of a run, which tell
  // each other in `folder` where they are.
  void watch(const std::filesystem::path& folder, int rank, int ranks);
  void leave();

  // What is named as the newest checkpoint.
  void remember_checkpoint(const std::filesystem::path& path);

  // Whether, since this rank's activity failed, another rank waits in a collective that this rank
  // will never come to. Always false where nothing is known of others.
  bool others_wait_in_vain() const { return in_vain_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Heard {  // from other ranks
    std::vector<std::optional<RankStatus>> places;
    std::uint64_t round = 0;
  };

  void judge();
  void exchange();
  void look(double passed);
  void warn(double silence);
  void look_for_lost(double passed, const RankStatus& own);
  std::string newest_checkpoint();
  void end(const std::string& report);
  RankStatus own_place();
  bool pause(double seconds);

  RankActivity& activity_;
  const WatchdogOptions options_;
  const double interval_;  // seconds between two looks

  std::mutex mutex_;
  std::condition_variable stops_;
  bool stopping_ = false;
  std::shared_ptr<RankFiles> files_;  // null: there are none
  int rank_ = 0, ranks_ = 1;          // in the run, or in the job where there is no run
  int run_ = 0;                       // counts calls of `watch` and `leave`
  Heard heard_;
  std::string checkpoint_;

  std::atomic<double> own_silence_{0};
  std::atomic<std::uint64_t> beat_{0};
  std::atomic<bool> in_vain_{false};

  // Of the judging thread.
  std::optional<SilenceMeter> meter_;
  int judged_run_ = 0;
  std::uint64_t judged_round_ = 0;
  double unheard_ = 0;       // seconds since the other thread came round
  double next_warning_ = 0;  // silence at which to warn again
  double over_ = 0;          // seconds since the timeout was over
  // Seconds in which it waits for ranks that have ended, or that do not answer though it is to stop.
  double ended_ = 0, mute_ = 0;

  std::thread judge_thread_, exchange_thread_;
};

}  // namespace tpudist
