#pragma once

#include <memory>

#include "dist/communicator.hpp"
#include "dist/rank_activity.hpp"

namespace tpudist {

// Initialises MPI (FUNNELED) in the constructor unless it is already, and finalises it in the
// destructor when it did. Started without mpirun it is a world of one. Only one may live at a time,
// and communicators are gone before it. A rank that leaves alone waits in the destructor for the
// others: an error that not all ranks share ends in `abort`.
class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // The world, host memory. Collective. Its calls are told to `activity`, which may be null and
  // outlives it.
  std::unique_ptr<Communicator> world(RankActivity* activity = nullptr) const;
  // Kills all ranks with this exit code; without MPI only this process.
  [[noreturn]] static void abort(int exit_code);

 private:
  bool owns_ = false;
};

}  // namespace tpudist
