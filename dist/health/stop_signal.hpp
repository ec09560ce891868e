#pragma once

#include <array>
#include <csignal>
#include <string_view>

namespace tpudist {

// Listens for stop requests while it lives: always for SIGUSR1, SIGUSR2, SIGXCPU and SIGINT; for
// SIGHUP unless the process was started to ignore it (nohup); for SIGTERM unless Open MPI's mpirun
// started the process. mpirun forwards SIGUSR1 and SIGUSR2 and lets the ranks run, but kills them
// within seconds of SIGTERM, SIGHUP or Ctrl-C, too soon for a checkpoint. srun, or a start without
// a launcher, delivers SIGTERM to the ranks and waits.
//
// The handler only sets a flag; the ranks agree on the flag between two steps. A second SIGINT ends
// the process at once, as without a handler. Throws DistError if another one lives. The destructor
// restores the previous handlers.
class StopSignal {
 public:
  // The handler writes `interrupt_notice` to standard error on the first SIGINT; the text must
  // outlive this object.
  explicit StopSignal(std::string_view interrupt_notice = "");
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Whether a signal came since the living object was made; false if none lives. Thread-safe.
  static bool requested();

  // Whether mpirun set OMPI_COMM_WORLD_SIZE for this process; true inside a Slurm allocation too.
  // srun does not set it.
  static bool started_by_mpirun();

 private:
  static constexpr std::array kSignals{SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP, SIGINT, SIGTERM};
  std::array<struct sigaction, kSignals.size()> previous_{};
};

}  // namespace tpudist
