#pragma once

namespace tpudist {

// Listens for stop requests while it lives: SIGUSR2 everywhere, and SIGTERM where the process was not started by mpirun (srun). The
// handler only sets a flag; ranks agree on it at a step boundary. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;
};

}  // namespace tpudist
