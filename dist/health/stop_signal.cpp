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

void listen(int signal, struct sigaction& previous, int flags = 0) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | flags;  // reads and writes under way go on
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, &previous) != 0) {
    throw DistError(fmt::format("sigaction({}): {}", signal, std::strerror(errno)));
  }
}

}  // namespace

bool StopSignal::started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

StopSignal::StopSignal(std::string_view interrupt_notice) : listens_to_term_(!started_by_mpirun()) {
  if (listener_lives.exchange(true)) throw DistError("a second StopSignal at the same time");
  stop_requested = false;
  notice = interrupt_notice;
  listen(SIGUSR2, previous_usr2_);
  // After the first SIGINT the default action is restored, which ends the process.
  listen(SIGINT, previous_int_, static_cast<int>(SA_RESETHAND));
  if (listens_to_term_) listen(SIGTERM, previous_term_);
}

StopSignal::~StopSignal() {
  if (listens_to_term_) sigaction(SIGTERM, &previous_term_, nullptr);
  sigaction(SIGINT, &previous_int_, nullptr);
  sigaction(SIGUSR2, &previous_usr2_, nullptr);
  stop_requested = false;
  listener_lives = false;
}

bool StopSignal::requested() {
  return stop_requested;
}

}  // namespace tpudist
