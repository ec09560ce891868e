#include "dist/health/rank_silence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <system_error>

#include "dist/health/agreement.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kListed = 8;  // most ranks with a line of their own

// The number of a rank in the job.
int number_of(std::span<const RankSilence> ranks, std::size_t rank) {
  return ranks[rank].known ? ranks[rank].status.rank : static_cast<int>(rank);
}

std::string list_of(std::span<const RankSilence> ranks, const std::vector<int>& which) {
  std::vector<int> numbers;
  for (const int rank : which) numbers.push_back(number_of(ranks, static_cast<std::size_t>(rank)));
  std::ranges::sort(numbers);
  return rank_list(numbers);
}

// A rank that waits in the latest collective in which any known rank waits; null if none waits.
const RankSilence* last_waiting(std::span<const RankSilence> ranks) {
  const RankSilence* last = nullptr;
  for (const RankSilence& rank : ranks) {
    if (!rank.known || !rank.status.waiting || rank.status.patient) continue;
    if (!last || rank.status.collective > last->status.collective) last = &rank;
  }
  return last;
}

// Whether a rank has reached the collective in which `last` waits; true if nobody waits.
bool has_arrived(const RankSilence& rank, const RankSilence* last) {
  return !last || rank.status.collective > last->status.collective ||
         (rank.status.collective == last->status.collective && rank.status.waiting);
}

std::string format_silence(double seconds) {
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string line_of(std::span<const RankSilence> ranks, std::size_t rank) {
  const RankSilence& silence = ranks[rank];
  const RankStatus& status = silence.status;
  return fmt::format("rank {} ({}, process {}): {}{}", status.rank, status.host, status.process,
                     describe(status),
                     silence.answers ? "" : "; its process is stopped, gone or cut off");
}

// Lines with the status of some ranks and of `self`, and how to continue.
std::string details(std::span<const RankSilence> ranks, std::vector<int> listed, int self,
                    std::string_view checkpoint) {
  if (std::ranges::find(listed, self) == listed.end()) listed.push_back(self);
  std::string text;
  for (std::size_t i = 0; i < std::min(listed.size(), kListed); ++i) {
    text += fmt::format("tpudist: {}\n", line_of(ranks, static_cast<std::size_t>(listed[i])));
  }
  if (!checkpoint.empty()) {
    text += fmt::format("tpudist: the newest checkpoint is {}; go on with --resume\n", checkpoint);
  }
  return text;
}

bool is_gone(std::int64_t process) {
  return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
}

}  // namespace

SilenceMeter::SilenceMeter(int ranks, int self, double patience)
    : self_(self),
      patience_(patience),
      ranks_(static_cast<std::size_t>(ranks)),
      unheard_(ranks_.size(), 0) {}

void SilenceMeter::take(RankSilence& rank, double seconds,
                        const std::optional<RankStatus>& status) {
  double& unheard = unheard_[&rank - ranks_.data()];
  if (!status || (rank.known && status->beat == rank.status.beat)) {
    rank.seconds += seconds;
    unheard += seconds;
    if (status) rank.status = *status;
  } else {
    rank.known = true;
    rank.status = *status;
    rank.seconds = status->silent;
    unheard = 0;
  }
  rank.answers = unheard < patience_;
}

void SilenceMeter::pass(double seconds, const RankStatus& own,
                        std::span<const std::optional<RankStatus>> others) {
  const auto self = static_cast<std::size_t>(self_);
  RankSilence& mine = ranks_[self];
  const bool got_on = !mine.known || own.finished != mine.status.finished || own.patient;
  mine.seconds = got_on ? 0 : mine.seconds + seconds;
  mine.known = true;
  mine.status = own;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == self) continue;
    if (others.empty()) {
      ranks_[rank] = {};
      unheard_[rank] = 0;
    } else {
      take(ranks_[rank], seconds, others[rank]);
    }
  }
}

double SilenceMeter::silence() const {
  double least = std::numeric_limits<double>::infinity();
  for (const RankSilence& rank : ranks_) {
    if (rank.known && !rank.status.patient) least = std::min(least, rank.seconds);
  }
  return least == std::numeric_limits<double>::infinity() ? 0 : least;
}

bool SilenceMeter::reports_hang() const {
  for (int rank = 0; rank < self_; ++rank) {
    const RankSilence& other = ranks_[rank];
    if (other.answers) return false;
  }
  return true;
}

std::vector<int> late_ranks(std::span<const RankSilence> ranks) {
  std::vector<int> dead, working, behind;
  const RankSilence* last = last_waiting(ranks);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankSilence& silence = ranks[rank];
    if (!silence.known) continue;
    if (!silence.answers) dead.push_back(static_cast<int>(rank));
    if (has_arrived(silence, last)) continue;
    behind.push_back(static_cast<int>(rank));
    if (!silence.status.waiting) working.push_back(static_cast<int>(rank));
  }
  if (!dead.empty()) return dead;
  return working.empty() ? behind : working;
}

std::string silence_line(std::span<const RankSilence> ranks, int self) {
  std::vector<int> told = late_ranks(ranks);
  if (told.empty()) told = {self};
  if (told.size() > 1) {
    const auto longest =
        std::ranges::max_element(told, {}, [&](int rank) { return ranks[rank].seconds; });
    return fmt::format("{} silent for {}; {}", list_of(ranks, told),
                       format_silence(ranks[*longest].seconds),
                       line_of(ranks, static_cast<std::size_t>(*longest)));
  }
  const auto rank = static_cast<std::size_t>(told[0]);
  const RankStatus& status = ranks[rank].status;
  return fmt::format("rank {} silent for {}: {}, {}{}", number_of(ranks, rank),
                     format_silence(ranks[rank].seconds), status.host, describe(status),
                     ranks[rank].answers ? "" : "; its process is stopped, gone or cut off");
}

std::string hang_report(std::span<const RankSilence> ranks, int self, double timeout,
                        std::string_view checkpoint, std::span<const std::string> hosts) {
  const RankSilence* last = last_waiting(ranks);
  const std::vector<int> late = late_ranks(ranks);
  std::vector<int> waiting, unknown;
  bool all_late_arrived = true;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankStatus& status = ranks[rank].status;
    if (!ranks[rank].known) {
      unknown.push_back(static_cast<int>(rank));
    } else if (std::ranges::find(late, static_cast<int>(rank)) != late.end()) {
      all_late_arrived = all_late_arrived && has_arrived(ranks[rank], last);
    } else if (status.waiting && !status.patient) {
      waiting.push_back(static_cast<int>(rank));
    }
  }
  std::string text =
      fmt::format("tpudist: error: nothing was finished for {:g} s (dist.timeout): ", timeout);
  if (waiting.empty()) {
    text += fmt::format("{} hang{}", list_of(ranks, late.empty() ? std::vector{self} : late),
                        late.size() > 1 ? "" : "s");
  } else {
    text += fmt::format("{} wait{} in collective {} ({})", list_of(ranks, waiting),
                        waiting.size() == 1 ? "s" : "", last->status.collective, last->status.call);
    const bool one = late.size() == 1;
    if (!late.empty() && all_late_arrived) {
      text += fmt::format(", {} {} not answer", list_of(ranks, late), one ? "does" : "do");
    } else if (!late.empty()) {
      text += fmt::format(", {} {} not arrived", list_of(ranks, late), one ? "has" : "have");
    } else if (unknown.empty()) {
      text += ", which all have reached: look at the network, or at MPI";
    }
  }
  if (!unknown.empty()) {
    std::set<std::string> on;
    for (const int rank : unknown)
      if (!hosts.empty()) on.insert(hosts[static_cast<std::size_t>(rank)]);
    text += fmt::format("; of {}{} nothing is known", list_of(ranks, unknown),
                        on.empty() ? "" : fmt::format(" ({})", fmt::join(on, ", ")));
  }
  return text + '\n' + details(ranks, late.empty() ? waiting : late, self, checkpoint);
}

std::string loss_report(std::span<const RankSilence> ranks, int self, const std::vector<int>& lost,
                        std::string_view why, std::string_view checkpoint) {
  const RankStatus& own = ranks[self].status;
  return fmt::format("tpudist: error: {} {}: rank {} waits in collective {} ({}) in vain\n",
                     list_of(ranks, lost), why, own.rank, own.collective, own.call) +
         details(ranks, lost, self, checkpoint);
}

std::string process_space() {
  std::string start;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> start;
  std::error_code error;
  const auto numbers = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  if (start.empty() || error) return "";
  return start + ' ' + numbers.string();
}

std::vector<int> ended_ranks(std::span<const RankSilence> ranks, int self) {
  const std::string& space = ranks[self].status.space;
  std::vector<int> ended;
  for (std::size_t rank = 0; rank < ranks.size() && !space.empty(); ++rank) {
    const RankStatus& status = ranks[rank].status;
    if (!ranks[rank].known || status.failed || status.space != space) continue;
    if (is_gone(status.process)) ended.push_back(static_cast<int>(rank));
  }
  return ended;
}

std::vector<int> mute_ranks(std::span<const RankSilence> ranks, int self) {
  std::vector<int> mute;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const RankSilence& other = ranks[rank];
    if (rank != self && other.known && !other.answers) mute.push_back(rank);
  }
  return mute;
}

}  // namespace tpudist
