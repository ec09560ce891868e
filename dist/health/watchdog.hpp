#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/descriptor.hpp"
#include "core/mutex.hpp"
#include "dist/collectives/rank_activity.hpp"
#include "dist/health/rank_silence.hpp"

namespace tpudist {

// The folder in which the ranks of a run share their status. Each rank has one small file, named by
// its number and rewritten in place. There are no locks, and a sync only if other nodes need it
// (NFS). A reader that sees halves of two texts tries again later. Files that a crash left behind
// are of use only to people. Not thread-safe.
class RankFiles {
 public:
  // Creates the folder if needed, and in it the file of rank `rank` of `ranks`. If this or a later
  // write fails, logs one warning; the other ranks then know nothing of this rank.
  RankFiles(std::filesystem::path folder, int rank, int ranks);

  void write(const RankStatus& status);
  // [ranks] the statuses of the other ranks, nothing where no complete one could be read.
  std::vector<std::optional<RankStatus>> read_others() const;

 private:
  void warn(const char* what);
  std::filesystem::path path_of(int rank) const;

  const std::filesystem::path folder_;
  const int rank_, ranks_;
  Descriptor file_;
  bool syncs_ = false, warned_ = false;
};

// Exit code of a process that its watchdog ended.
inline constexpr int kHungExitCode = 86;

// Ends a process that hangs. One thread checks the activity at least forty times within the
// timeout. If no rank has finished anything for the whole timeout, the thread prints where this
// rank is and which ranks the others wait for. Then it ends the process with kHungExitCode, without
// telling MPI; mpirun, or srun with --kill-on-bad-exit, ends the other ranks. The thread warns long
// before the timeout. A second thread exchanges the ranks' statuses through files, because no rank
// counts as hung while another makes progress. Without files, or if the disk does not answer, only
// this rank's own activity counts.
//
// A rank that waits in a collective for a rank that will not come is ended within seconds. A rank
// will not come if its process on the same machine has ended or, after a StopSignal, if it does not
// answer. (When a rank dies, srun sends the others SIGTERM, which here asks for a checkpoint, and
// kills them only after Slurm's KillWait.)
//
// Thread-safe except for `watch` and `leave`, which only the thread that calls MPI may call.
class Watchdog {
 public:
  struct Options {
    double timeout = 600;     // seconds without progress before the watchdog acts; 0: off
    int rank = 0, ranks = 1;  // in the job
    // Ends the process in place of `_exit`. For tests.
    std::function<void(const std::string& report)> end = {};
  };

  // `activity` is borrowed.
  Watchdog(RankActivity& activity, Options options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  RankActivity& activity() { return activity_; }

  // Until `leave`, this rank is rank `rank` of the `ranks` ranks of a run, which exchange their
  // statuses in `folder`.
  void watch(const std::filesystem::path& folder, int rank, int ranks);
  void leave();

  // Sets the hosts, [ranks of the job], that reports give of ranks of which nothing else is known.
  void name_hosts(std::vector<std::string> hosts);

  // Sets the path that reports give as that of the newest checkpoint.
  void remember_checkpoint(const std::filesystem::path& path);

  // Whether this rank's activity failed and another rank waits in a collective that this rank will
  // never reach. False if nothing is known of other ranks.
  bool others_wait_in_vain() const { return others_wait_in_vain_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Heard {  // from other ranks
    std::vector<std::optional<RankStatus>> statuses;
    std::uint64_t round = 0;
  };

  void judge();
  void exchange();
  void look(double passed);
  void warn(double silence);
  void look_for_lost(double passed, const RankStatus& own);
  std::string newest_checkpoint();
  void end(const std::string& report);
  RankStatus own_status();
  bool pause(double seconds);

  RankActivity& activity_;
  const Options options_;
  const double interval_;  // seconds between two looks

  Mutex mutex_;
  std::condition_variable stops_;
  bool stopping_ TPUDIST_GUARDED_BY(mutex_) = false;
  std::shared_ptr<RankFiles> files_ TPUDIST_GUARDED_BY(mutex_);  // null: no files
  int rank_ TPUDIST_GUARDED_BY(mutex_);  // in the run; in the job outside a run
  int ranks_ TPUDIST_GUARDED_BY(mutex_);
  int run_ TPUDIST_GUARDED_BY(mutex_) = 0;  // counts calls of `watch` and `leave`
  Heard heard_ TPUDIST_GUARDED_BY(mutex_);
  std::string checkpoint_ TPUDIST_GUARDED_BY(mutex_);
  std::vector<std::string> hosts_ TPUDIST_GUARDED_BY(mutex_);

  std::atomic<double> own_silence_{0};
  std::atomic<std::uint64_t> beat_{0};
  std::atomic<bool> others_wait_in_vain_{false};

  // Used only by the judging thread.
  std::optional<SilenceMeter> meter_;
  int judged_run_ = 0;
  std::uint64_t judged_round_ = 0;
  double unheard_ = 0;       // seconds since the last exchange
  double next_warning_ = 0;  // silence at which to warn again
  double seconds_over_timeout_ = 0;
  // Seconds of waiting for ranks that have ended, and, after a stop request, for ranks that do not
  // answer.
  double ended_ = 0, mute_ = 0;

  std::thread judge_thread_, exchange_thread_;
};

}  // namespace tpudist
