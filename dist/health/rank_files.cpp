#include "dist/health/rank_files.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/check.hpp"

namespace tpudist {
namespace {

// Fixed size of each file, so that no old text remains after a shorter new one.
constexpr std::size_t kBytes = 1024;

// Whether other nodes see what is written only when it is synced: the client of NFS may keep it for
// half a minute, and this rank would seem dead.
bool keeps_writes(int descriptor) {
  struct statfs system {};
  return ::fstatfs(descriptor, &system) == 0 && system.f_type == NFS_SUPER_MAGIC;
}

}  // namespace

RankFiles::RankFiles(std::filesystem::path folder, int rank, int ranks)
    : folder_(std::move(folder)), rank_(rank), ranks_(ranks) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  // Only the owner writes; everybody who may read the run may read the status.
  const std::filesystem::path path = path_of(rank_);
  file_ = Descriptor(uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644); }));
  if (!file_) warn(std::strerror(errno));
  syncs_ = keeps_writes(file_.get());
}

void RankFiles::write(const RankStatus& place) {
  if (!file_) return;
  std::string text = to_text(place);
  text.resize(kBytes, '\n');
  const ssize_t written =
      uninterrupted([&] { return ::pwrite(file_.get(), text.data(), text.size(), 0); });
  if (written < 0 || (syncs_ && ::fdatasync(file_.get()) != 0)) warn(std::strerror(errno));
}

std::vector<std::optional<RankStatus>> RankFiles::read_others() const {
  std::vector<std::optional<RankStatus>> places(static_cast<std::size_t>(ranks_));
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    // If it is a FIFO, opening must not block.
    const std::filesystem::path path = path_of(rank);
    const Descriptor file(uninterrupted(
        [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }));
    if (!file) continue;
    std::array<char, kBytes> buffer;
    const ssize_t count =
        uninterrupted([&] { return ::pread(file.get(), buffer.data(), buffer.size(), 0); });
    if (count > 0) {
      places[static_cast<std::size_t>(rank)] =
          parse_place(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
    }
  }
  return places;
}

void RankFiles::warn(const char* what) {
  if (std::exchange(warned_, true)) return;
  spdlog::warn(
      "{}: cannot write where this rank is ({}): if a rank hangs, the others will not know which",
      path_of(rank_).string(), what);
}

std::filesystem::path RankFiles::path_of(int rank) const {
  return folder_ / std::to_string(rank);
}

}  // namespace tpudist
