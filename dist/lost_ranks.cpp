#include "dist/lost_ranks.hpp"

#include <signal.h>
#include <sys/types.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tpudist {
namespace {

bool is_gone(std::int64_t process) {
  return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string process_space() {
  std::string start;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> start;
  std::error_code error;
  const auto numbers = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  if (start.empty() || error) return "";
  return start + ' ' + numbers.string();
}

std::vector<int> ended_ranks(std::span<const RankSilence> ranks, int self) {
  const std::string& space = ranks[static_cast<std::size_t>(self)].place.space;
  std::vector<int> ended;
  for (std::size_t rank = 0; rank < ranks.size() && !space.empty(); ++rank) {
    const RankStatus& place = ranks[rank].place;
    if (!ranks[rank].known || place.failed || place.space != space) continue;
    if (is_gone(place.process)) ended.push_back(static_cast<int>(rank));
  }
  return ended;
}

std::vector<int> mute_ranks(std::span<const RankSilence> ranks, int self) {
  std::vector<int> mute;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const RankSilence& other = ranks[static_cast<std::size_t>(rank)];
    if (rank != self && other.known && !other.answers) mute.push_back(rank);
  }
  return mute;
}

}  // namespace tpudist
