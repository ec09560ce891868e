#include "dist/health/stop_signal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"

namespace tpudist {
namespace {

// A signal handler can only use globals; a lock-free atomic is safe in it.
std::atomic<bool> stop_requested = false;
std::atomic<bool> listener_lives = false;
static_assert(std::atomic<bool>::is_always_lock_free);

// What the handler of SIGINT writes; set while no handler is installed.
std::string_view notice;

void on_signal(int signal) {
  stop_requested = true;
  if (signal != SIGINT || notice.empty()) return;
  const int error = errno;  // the interrupted code may be about to read it
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, notice.data(), notice.size());
  errno = error;
}

void set_action(int signal, const struct sigaction* action, struct sigaction* previous) {
  if (sigaction(signal, action, previous) != 0)
    throw DistError(fmt::format("sigaction({}): {}", signal, std::strerror(errno)));
}

}  // namespace

bool StopSignal::started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

StopSignal::StopSignal(std::string_view interrupt_notice) {
  if (listener_lives.exchange(true)) throw DistError("a second StopSignal at the same time");
  stop_requested = false;
  notice = interrupt_notice;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    const int signal = kSignals[i];
    set_action(signal, nullptr, &previous_[i]);
    if (signal == SIGTERM && started_by_mpirun()) continue;
    if (signal == SIGHUP && previous_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;  // reads and writes under way go on
    // After the first SIGINT the default action is restored, which ends the process.
    if (signal == SIGINT) action.sa_flags |= static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    set_action(signal, &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
  stop_requested = false;
  listener_lives = false;
}

bool StopSignal::requested() {
  return stop_requested;
}

}  // namespace tpudist
