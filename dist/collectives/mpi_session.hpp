#pragma once

#include <memory>
#include <string>

#include "dist/collectives/communicator.hpp"
#include "dist/collectives/rank_activity.hpp"

namespace tpudist {

// Initialises MPI (FUNNELED) in the constructor unless it is initialised, and then finalises it in
// the destructor. Without mpirun the world is one rank. Only one session may live at a time, and
// communicators must be destroyed first. The destructor waits for all ranks, so a rank that fails
// alone must call `abort`.
class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // The communicator of all ranks, in host memory. Collective. It reports its calls to `activity`,
  // which may be null and must outlive it.
  std::unique_ptr<Communicator> world(RankActivity* activity = nullptr) const;
  // Ends all ranks with this exit code; without MPI, only this process.
  [[noreturn]] static void abort(int exit_code);

 private:
  bool owns_ = false;
};

// The loaded MPI, e.g. "Open MPI v4.1.4".
std::string mpi_library();
// False if MPI is only its stand-in, python/one_rank_mpi.c.
bool found_mpi();

}  // namespace tpudist
