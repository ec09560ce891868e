#include "dist/stop_signal.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"

namespace tpudist {
namespace {

// A handler can reach nothing but globals; a lock-free atomic is safe in it.
std::atomic<bool> stop_requested = false;
std::atomic<bool> listener_lives = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  stop_requested = true;
}

void listen(int signal, struct sigaction& previous) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes under way go on
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, &previous) != 0) {
    throw DistError(fmt::format("sigaction({}): {}", signal, std::strerror(errno)));
  }
}

}  // namespace

bool StopSignal::started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

StopSignal::StopSignal() : listens_to_term_(!started_by_mpirun()) {
  if (listener_lives.exchange(true)) throw DistError("a second StopSignal at the same time");
  stop_requested = false;
  listen(SIGUSR2, previous_usr2_);
  if (listens_to_term_) listen(SIGTERM, previous_term_);
}

StopSignal::~StopSignal() {
  if (listens_to_term_) sigaction(SIGTERM, &previous_term_, nullptr);
  sigaction(SIGUSR2, &previous_usr2_, nullptr);
  listener_lives = false;
}

bool StopSignal::requested() const {
  return stop_requested;
}

}  // namespace tpudist
