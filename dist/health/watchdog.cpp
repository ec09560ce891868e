#include "dist/health/watchdog.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/numbers.hpp"
#include "core/process.hpp"
#include "dist/health/stop_signal.hpp"

namespace tpudist {
namespace {

// Fixed size of each file, so that no old text remains after a shorter new one.
constexpr std::size_t kBytes = 1024;

// Whether other nodes see a write only after a sync: an NFS client may keep it for half a minute,
// and this rank would seem dead.
bool keeps_writes(int descriptor) {
  struct statfs system {};
  return ::fstatfs(descriptor, &system) == 0 && system.f_type == NFS_SUPER_MAGIC;
}

constexpr double kShortest = 0.02, kLongest = 1;  // seconds between two checks
constexpr double kLooks = 40;                     // at least, within the timeout
constexpr double kFirstWarning = 60;              // seconds; a tenth of the timeout if that is less
constexpr double kReporterPatience = 2;           // seconds for the first answering rank to print
constexpr double kEndedPatience = 2;              // seconds for the launcher to end this rank
constexpr double kMutePatience = 5;               // seconds for a rank that does not answer

double interval_of(double timeout) {
  return std::clamp(timeout / kLooks, kShortest, kLongest);
}

// Seconds without news after which a rank, or the disk, does not answer.
double patience_of(double interval) {
  return 5 * interval + 0.5;
}

double warning_of(double timeout) {
  return std::min(kFirstWarning, timeout / 10);
}

// Whether a line can be written to standard error without waiting. A stopped terminal or a full
// pipe would block, and may even be the reason for the hang.
bool can_tell() {
  struct pollfd error {
    STDERR_FILENO, POLLOUT, 0
  };
  return ::poll(&error, 1, 0) == 1 && (error.revents & POLLOUT) != 0;
}

void end_process(const std::string& report) {
  if (can_tell()) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, report.data(), report.size());
  }
  ::_exit(kHungExitCode);
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

void RankFiles::write(const RankStatus& status) {
  if (!file_) return;
  std::string text = to_text(status);
  text.resize(kBytes, '\n');
  const ssize_t written =
      uninterrupted([&] { return ::pwrite(file_.get(), text.data(), text.size(), 0); });
  if (written < 0 || (syncs_ && ::fdatasync(file_.get()) != 0)) warn(std::strerror(errno));
}

std::vector<std::optional<RankStatus>> RankFiles::read_others() const {
  std::vector<std::optional<RankStatus>> statuses(ranks_);
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    // The file may be a FIFO: opening must not block.
    const std::filesystem::path path = path_of(rank);
    const Descriptor file(uninterrupted(
        [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }));
    if (!file) continue;
    std::array<char, kBytes> buffer;
    const ssize_t count =
        uninterrupted([&] { return ::pread(file.get(), buffer.data(), buffer.size(), 0); });
    if (count > 0) {
      statuses[rank] =
          parse_status(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
    }
  }
  return statuses;
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

Watchdog::Watchdog(RankActivity& activity, Options options)
    : activity_(activity),
      options_(std::move(options)),
      interval_(interval_of(options_.timeout)),
      rank_(options_.rank),
      ranks_(options_.ranks) {
  if (options_.timeout <= 0) return;
  judge_thread_ = std::thread([this] { judge(); });
  exchange_thread_ = std::thread([this] { exchange(); });
}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stops_.notify_all();
  if (judge_thread_.joinable()) judge_thread_.join();
  if (exchange_thread_.joinable()) exchange_thread_.join();
}

void Watchdog::watch(const std::filesystem::path& folder, int rank, int ranks) {
  if (options_.timeout <= 0) return;
  const auto files = std::make_shared<RankFiles>(folder, rank, ranks);
  files->write(own_status());
  const MutexLock lock(mutex_);
  ++run_;
  files_ = files;
  rank_ = rank;
  ranks_ = ranks;
  heard_ = {};
}

void Watchdog::leave() {
  const MutexLock lock(mutex_);
  ++run_;
  files_ = nullptr;
  rank_ = options_.rank;
  ranks_ = options_.ranks;
  heard_ = {};
  checkpoint_.clear();
}

void Watchdog::remember_checkpoint(const std::filesystem::path& path) {
  const MutexLock lock(mutex_);
  checkpoint_ = path.string();
}

void Watchdog::name_hosts(std::vector<std::string> hosts) {
  const MutexLock lock(mutex_);
  hosts_ = std::move(hosts);
}

// Returns false if the watchdog is to stop.
bool Watchdog::pause(double seconds) {
  MutexLock lock(mutex_);
  return !stops_.wait_for(lock, std::chrono::duration<double>(seconds),
                          [&]() TPUDIST_REQUIRES(mutex_) { return stopping_; });
}

RankStatus Watchdog::own_status() {
  static const std::string host = host_name(), space = process_space();
  RankStatus status = activity_.status();
  status.rank = options_.rank;
  status.host = host;
  status.process = ::getpid();
  status.space = space;
  status.silent = own_silence_;
  status.beat = ++beat_;
  return status;
}

// Reads the other ranks' statuses only while this rank finishes nothing, so that healthy ranks cost
// each other nothing.
void Watchdog::exchange() {
  while (pause(interval_)) {
    std::shared_ptr<RankFiles> files;
    {
      const MutexLock lock(mutex_);
      files = files_;
    }
    if (!files) continue;
    const RankStatus own = own_status();
    files->write(own);
    std::vector<std::optional<RankStatus>> statuses;
    if (own.silent > 1.5 * interval_ || own.patient || own.failed) statuses = files->read_others();
    const MutexLock lock(mutex_);
    if (files != files_) continue;
    heard_.statuses = std::move(statuses);
    ++heard_.round;
  }
}

void Watchdog::judge() {
  auto last = Clock::now();
  while (pause(interval_)) {
    const auto now = Clock::now();
    const double passed = seconds_between(last, now);
    last = now;
    // A stopped process, or a machine that slept, did not hang during that time.
    look(std::min(passed, 2 * interval_ + 0.5));
  }
}

void Watchdog::look(double passed) {
  const RankStatus own = own_status();
  Heard heard;
  std::vector<std::string> hosts;
  {
    const MutexLock lock(mutex_);
    if (std::ssize(hosts_) == ranks_) hosts = hosts_;  // not for a part of the job's ranks
    if (!meter_ || judged_run_ != run_) {
      judged_run_ = run_;
      meter_.emplace(ranks_, rank_, patience_of(interval_));
      next_warning_ = warning_of(options_.timeout);
    }
    if (files_) heard = heard_;
  }
  const bool new_round = heard.round != judged_round_;
  unheard_ = new_round ? 0 : unheard_ + passed;
  judged_round_ = heard.round;
  // If the disk does not answer, nothing is known about other ranks.
  if (unheard_ > patience_of(interval_)) heard.statuses.clear();
  meter_->pass(passed, own, heard.statuses);
  own_silence_ = meter_->ranks()[meter_->self()].seconds;

  others_wait_in_vain_ =
      own.failed && std::ranges::any_of(meter_->ranks(), [&](const RankSilence& rank) {
        return rank.known && rank.status.waiting && !rank.status.patient && !rank.status.failed &&
               rank.status.collective > activity_.failed_behind();
      });
  const double silence = meter_->silence();
  if (silence >= next_warning_) warn(silence);
  if (silence < warning_of(options_.timeout)) next_warning_ = warning_of(options_.timeout);
  seconds_over_timeout_ = silence >= options_.timeout ? seconds_over_timeout_ + passed : 0;
  if (seconds_over_timeout_ > 0 &&
      (meter_->reports_hang() || seconds_over_timeout_ > kReporterPatience)) {
    seconds_over_timeout_ = 0;
    end(hang_report(meter_->ranks(), meter_->self(), options_.timeout, newest_checkpoint(),
                    hosts));
  }
  look_for_lost(passed, own);
}

void Watchdog::warn(double silence) {
  next_warning_ = 2 * std::max(silence, next_warning_);
  if (silence >= options_.timeout || !meter_->reports_hang() || !can_tell()) return;
  spdlog::warn("{} (dist.timeout: {:g} s)", silence_line(meter_->ranks(), meter_->self()),
               options_.timeout);
}

void Watchdog::look_for_lost(double passed, const RankStatus& own) {
  const std::span<const RankSilence> ranks = meter_->ranks();
  const int self = meter_->self();
  std::vector<int> ended, mute;
  if (own.waiting && !own.patient && !own.failed) {
    ended = ended_ranks(ranks, self);
    if (StopSignal::requested()) mute = mute_ranks(ranks, self);
  }
  ended_ = ended.empty() ? 0 : ended_ + passed;
  mute_ = mute.empty() ? 0 : mute_ + passed;
  if (ended_ > kEndedPatience) {
    ended_ = 0;
    end(loss_report(ranks, self, ended, "ended without a word", newest_checkpoint()));
  } else if (mute_ > kMutePatience) {
    mute_ = 0;
    end(loss_report(ranks, self, mute, "did not answer when the job was to stop",
                    newest_checkpoint()));
  }
}

std::string Watchdog::newest_checkpoint() {
  const MutexLock lock(mutex_);
  return checkpoint_;
}

void Watchdog::end(const std::string& report) {
  if (!options_.end) end_process(report);
  options_.end(report);
}

}  // namespace tpudist
