#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dist/rank_activity.hpp"

namespace tpudist {

// What one rank knows of another, or of itself.
struct RankSilence {
  bool known = false;   // whether `place` was ever read
  bool answers = true;  // whether it still tells of itself
  double seconds = 0;   // since it finished anything, as far as is known
  RankStatus place;
};

// Measures for how long the ranks of a run have finished nothing. Ranks are asked again and again;
// each says for how long it is silent by its own clock, and of one that says nothing new the time is
// counted here, so that times of two hosts are never compared. Time is what the caller says has
// passed: where the process or the machine slept, that is next to nothing. Not thread-safe.
class SilenceMeter {
 public:
  // Of `ranks` ranks this is number `self`. A rank that has told nothing new for `patience` seconds
  // does not answer.
  SilenceMeter(int ranks, int self, double patience);

  // `seconds` have passed. `others` [ranks], that of `self` is passed over; nothing where a rank's
  // place could not be read. Empty: nobody could be asked.
  void pass(double seconds, const RankStatus& own,
            std::span<const std::optional<RankStatus>> others = {});

  // Seconds in which no rank finished anything. Ranks that wait patiently do not count; of a rank
  // that is not known only this rank's own silence is. 0 where all wait patiently.
  double silence() const;

  const std::vector<RankSilence>& ranks() const { return ranks_; }  // [ranks]
  int self() const { return self_; }
  // The first rank that answers: the one that speaks for all.
  bool speaks() const;

 private:
  void take(RankSilence& rank, double seconds, const std::optional<RankStatus>& place);

  const int self_;
  const double patience_;
  std::vector<RankSilence> ranks_;
  std::vector<double> unheard_;  // [ranks] seconds without anything new
};

// Ranks that the others wait for: those that do not answer; where there are none, those that work and
// have not come to the last collective that any rank waits in; where none of them works, those that
// wait in an earlier one. Only ranks that are known.
std::vector<int> late_ranks(std::span<const RankSilence> ranks);

// "rank 1 silent for 60 s: ..." for the ranks that the others wait for, at most a few; where it is
// none of them, for `self`.
std::string silence_line(std::span<const RankSilence> ranks, int self);

// What is printed before the process ends, with a line break at the end of each line. `timeout` in
// seconds; `checkpoint`: the newest, empty if none is known.
std::string hang_report(std::span<const RankSilence> ranks, int self, double timeout,
                        std::string_view checkpoint);

// The same where rank `self` waits for ranks that will not come: `lost`, at least one. `why`: what has
// become of them, e.g. "ended without a word".
std::string loss_report(std::span<const RankSilence> ranks, int self, const std::vector<int>& lost,
                        std::string_view why, std::string_view checkpoint);

}  // namespace tpudist
