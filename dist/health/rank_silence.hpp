#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dist/collectives/rank_activity.hpp"

namespace tpudist {

// What one rank knows about another rank, or about itself.
struct RankSilence {
  bool known = false;   // whether `status` was ever read
  bool answers = true;  // whether the rank still reports anything new
  double seconds = 0;   // since the rank finished anything, as far as known
  RankStatus status;
};

// Measures how long the ranks of a run have finished nothing. Each rank reports its silence by its
// own clock; while a rank reports nothing new, this rank adds the time. So clocks of two hosts are
// never compared. Time advances only by what the caller passes in, so a process or machine that
// slept counts almost nothing. Not thread-safe.
class SilenceMeter {
 public:
  // For rank `self` of `ranks` ranks. A rank that has reported nothing new for `patience` seconds
  // does not answer.
  SilenceMeter(int ranks, int self, double patience);

  // Reports that `seconds` have passed. `others` [ranks]: the statuses of the others, nothing for
  // one that could not be read; `self` is ignored. Empty: no rank could be asked.
  void pass(double seconds, const RankStatus& own,
            std::span<const std::optional<RankStatus>> others = {});

  // Seconds in which no rank finished anything; ranks that wait patiently and unknown ranks are
  // ignored. 0 if all wait patiently.
  double silence() const;

  const std::vector<RankSilence>& ranks() const { return ranks_; }  // [ranks]
  int self() const { return self_; }
  // Whether this rank is the first that answers; only the first prints for all.
  bool reports_hang() const;

 private:
  void take(RankSilence& rank, double seconds, const std::optional<RankStatus>& status);

  const int self_;
  const double patience_;
  std::vector<RankSilence> ranks_;
  std::vector<double> unheard_;  // [ranks] seconds without a new report
};

// The known ranks that the others wait for, by the first rule that names any:
// 1. those that do not answer,
// 2. those that work and have not reached the last collective in which any rank waits,
// 3. those that wait in an earlier collective.
std::vector<int> late_ranks(std::span<const RankSilence> ranks);

// "rank 1 silent for 60 s: ..." about the ranks that the others wait for, at most a few, or about
// `self` if there are none.
std::string silence_line(std::span<const RankSilence> ranks, int self);

// The text printed before the process ends; each line ends with a newline. `timeout` in seconds.
// `checkpoint`: the newest one, empty if unknown. `hosts` [R]: names those of ranks of which nothing
// else is known; empty if unknown.
std::string hang_report(std::span<const RankSilence> ranks, int self, double timeout,
                        std::string_view checkpoint, std::span<const std::string> hosts = {});

// The same if rank `self` waits for ranks `lost` (at least one), which will not come. `why`: what
// happened to them, e.g. "ended without a word".
std::string loss_report(std::span<const RankSilence> ranks, int self, const std::vector<int>& lost,
                        std::string_view why, std::string_view checkpoint);

// Identifies the processes among which a process number is unique: one boot of a machine and one
// PID namespace. Empty if the system does not say.
std::string process_space();

// The ranks whose processes have ended although they reported no failure. `ranks` [R]. Only known
// ranks in the process space of rank `self` can be judged.
std::vector<int> ended_ranks(std::span<const RankSilence> ranks, int self);

// The known ranks other than `self` that do not answer.
std::vector<int> mute_ranks(std::span<const RankSilence> ranks, int self);

}  // namespace tpudist
