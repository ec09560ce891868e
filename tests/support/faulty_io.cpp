#include "tests/support/faulty_io.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string_view>

namespace tpudist::test {
namespace {

struct Faults {
  bool interrupt = false;
  int delay_ms = 0;
  int skipped = -1;                // reads before those that fail; below 0: none fails
  int lock_error = 0;              // what flock answers; 0: it works
  std::string path, switch_file;   // empty switch: always
  const Faults* before = nullptr;  // those made before
};

// None is freed: other threads may be reading by it.
const Faults* newest = nullptr;
std::atomic<const Faults*> current{nullptr};
std::atomic<int> reads_seen{0};

// The text up to the next `mark`, which is taken off `rest`.
std::string next_part(std::string_view& rest, char mark) {
  const std::size_t end = std::min(rest.find(mark), rest.size());
  const std::string part(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// One thread at a time.
const Faults* parse(std::string_view text) {
  auto* faults = new Faults;
  const std::string kind_text = next_part(text, ':');
  std::string_view number = kind_text;
  const std::string kind = next_part(number, '=');
  faults->interrupt = kind == "interrupt";
  if (kind == "slow") faults->delay_ms = std::atoi(std::string(number).c_str());
  if (kind == "error") faults->skipped = std::atoi(std::string(number).c_str());
  if (kind == "lock") faults->lock_error = std::atoi(std::string(number).c_str());
  faults->path = next_part(text, ':');
  faults->switch_file = next_part(text, ':');
  faults->before = newest;
  return newest = faults;
}

// The faults that hold for a path, if any.
const Faults* faults_of(std::string_view path) {
  const Faults* faults = current;
  if (!faults || path.find(faults->path) == path.npos) return nullptr;
  if (!faults->switch_file.empty() && ::access(faults->switch_file.c_str(), F_OK) != 0)
    return nullptr;
  return faults;
}

const Faults* faults_of(int descriptor) {
  if (!current) return nullptr;
  const int error = errno;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  std::array<char, 4096> path;
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  const Faults* faults =
      length > 0 ? faults_of({path.data(), static_cast<std::size_t>(length)}) : nullptr;
  errno = error;
  return faults;
}

// True for every second call of a thread, with errno set.
bool interrupts(const Faults* faults) {
  if (!faults || !faults->interrupt) return false;
  thread_local unsigned calls = 0;
  if (++calls % 2 == 0) return false;
  errno = EINTR;
  return true;
}

std::size_t part_of(const Faults* faults, std::size_t bytes) {
  return faults && faults->interrupt ? bytes - bytes / 2 : bytes;
}

void wait(int milliseconds) {
  timespec left{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// What becomes of a read: -1 with errno, or 0 where it is to be done.
int before_read(const Faults* faults) {
  if (!faults) return 0;
  const int number = reads_seen++;
  if (faults->delay_ms > 0) wait(faults->delay_ms);
  if (faults->skipped >= 0 && number >= faults->skipped) {
    errno = EIO;
    return -1;
  }
  return interrupts(faults) ? -1 : 0;
}

template <typename... T>
long call(long number, T... values) {
  return ::syscall(number, values...);
}

// Signals that arrive all the time. SIGURG is ignored where nobody handles it, as in a program that
// this one becomes by exec.
void start_timer() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGURG, &action, nullptr);
  struct sigevent event {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGURG;
  timer_t timer;
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) std::abort();
  itimerspec every{};
  every.it_value.tv_nsec = every.it_interval.tv_nsec = 1'000'000;
  if (::timer_settime(timer, 0, &every, nullptr) != 0) std::abort();
}

// Programs that tpudist starts, such as the daemon of an MPI job of one process, have signals of
// their own.
bool is_tpudist() {
  std::array<char, 4096> path;
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 &&
         std::string_view(path.data(), static_cast<std::size_t>(length)).find("/tpudist") !=
             std::string_view::npos;
}

__attribute__((constructor)) void read_environment() {
  const char* text = std::getenv("TPUDIST_FAULTY_IO");
  if (!text || !is_tpudist()) return;
  const Faults* faults = parse(text);
  if (faults->interrupt) start_timer();
  current = faults;
}

}  // namespace

FaultyIo::FaultyIo(const std::string& text) {
  reads_seen = 0;
  current = parse(text);
}

FaultyIo::~FaultyIo() {
  current = nullptr;
}

int FaultyIo::reads() const {
  return reads_seen;
}

}  // namespace tpudist::test

using namespace tpudist::test;  // NOLINT: what follows stands for functions of the C library

extern "C" {

ssize_t read(int descriptor, void* buffer, size_t bytes) {
  const Faults* faults = faults_of(descriptor);
  if (before_read(faults) != 0) return -1;
  return call(SYS_read, descriptor, buffer, part_of(faults, bytes));
}

ssize_t pread(int descriptor, void* buffer, size_t bytes, off_t offset) {
  const Faults* faults = faults_of(descriptor);
  if (before_read(faults) != 0) return -1;
  return call(SYS_pread64, descriptor, buffer, part_of(faults, bytes), offset);
}

ssize_t pread64(int descriptor, void* buffer, size_t bytes, off64_t offset) {
  return pread(descriptor, buffer, bytes, offset);
}

ssize_t write(int descriptor, const void* buffer, size_t bytes) {
  const Faults* faults = faults_of(descriptor);
  if (interrupts(faults)) return -1;
  return call(SYS_write, descriptor, buffer, part_of(faults, bytes));
}

ssize_t pwrite(int descriptor, const void* buffer, size_t bytes, off_t offset) {
  const Faults* faults = faults_of(descriptor);
  if (interrupts(faults)) return -1;
  return call(SYS_pwrite64, descriptor, buffer, part_of(faults, bytes), offset);
}

ssize_t pwrite64(int descriptor, const void* buffer, size_t bytes, off64_t offset) {
  return pwrite(descriptor, buffer, bytes, offset);
}

int fsync(int descriptor) {
  if (interrupts(faults_of(descriptor))) return -1;
  return static_cast<int>(call(SYS_fsync, descriptor));
}

int flock(int descriptor, int operation) noexcept {
  const Faults* faults = faults_of(descriptor);
  if (interrupts(faults)) return -1;
  if (faults && faults->lock_error != 0) {
    errno = faults->lock_error;
    return -1;
  }
  return static_cast<int>(call(SYS_flock, descriptor, operation));
}

int posix_fallocate(int descriptor, off_t offset, off_t bytes) {
  const int error = errno;
  int result = 0;
  if (interrupts(faults_of(descriptor)) || call(SYS_fallocate, descriptor, 0, offset, bytes) != 0)
    result = errno;
  errno = error;
  return result;
}

// With the path as it was given, so that it has to be an absolute one to be meant. Folders are
// opened by std::filesystem, which does not repeat that.
int openat(int folder, const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  if ((flags & O_DIRECTORY) == 0 && interrupts(faults_of(std::string_view(path)))) return -1;
  return static_cast<int>(call(SYS_openat, folder, path, flags, mode));
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  return openat(AT_FDCWD, path, flags, mode);
}

}  // extern "C"
