#pragma once

#include <csignal>
#include <string_view>

namespace tpudist {

// Listens for stop requests while it lives: SIGUSR2 and SIGINT everywhere, and SIGTERM unless the
// process was started by Open MPI's mpirun. mpirun forwards SIGUSR2 and leaves the ranks alone, but
// on SIGTERM, and on a Ctrl-C, it kills them within seconds, so that no checkpoint could be
// promised; srun, or a plain start, delivers SIGTERM to the ranks and waits. The handler only sets
// a flag; ranks agree on it at a step boundary. A second SIGINT ends the process at once, as if
// nobody listened. One at a time, else DistError; the handlers found are put back in the end.
class StopSignal {
 public:
  // The handler writes `interrupt_notice` to standard error on the first SIGINT; the text must
  // outlive this object.
  explicit StopSignal(std::string_view interrupt_notice = "");
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Whether a signal came since the newest object was made, while it lives. Thread-safe.
  static bool requested();

  // Whether mpirun set OMPI_COMM_WORLD_SIZE for this process (also inside a SLURM allocation; srun
  // does not set it).
  static bool started_by_mpirun();

 private:
  bool listens_to_term_;
  struct sigaction previous_usr2_ {
  }, previous_term_{}, previous_int_{};
};

}  // namespace tpudist
