#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "dist/communicator.hpp"

namespace tpudist {

// A group of one: every call is a copy.
std::unique_ptr<Communicator> make_self_communicator(MemoryKind memory = MemoryKind::host);

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

  // The world, host memory. Collective.
  std::unique_ptr<Communicator> world() const;
  // Kills all ranks with this exit code; without MPI only this process.
  [[noreturn]] static void abort(int exit_code);

 private:
  bool owns_ = false;
};

// Place of this rank on its node, by MPI_Comm_split_type(SHARED), and the GPU that follows from it.
struct NodePlace {
  int node = 0, nodes = 1;              // number of this node, in the order of their first ranks
  int local_rank = 0, local_ranks = 1;  // rank within the node
  int device = -1;                      // CUDA device index, -1 = CPU
};

// Collective. `device` is "auto", "cpu" or "cuda". With "cuda" (or auto, when every node has a GPU
// for each of its ranks) each rank takes a GPU of its own: that of its local rank, or the only one
// that the batch system shows it. Throws ConfigError, on every rank, when "cuda" is asked for and a
// node has fewer GPUs than ranks.
NodePlace place_rank(Communicator& world, std::string_view device);

// NCCL over the ranks of `world` on their devices; the NCCL id travels by `world`. Collective.
// Every call runs on a stream of its own: it waits for what was put on blocking streams (the
// default stream) of the device before, and is done when it returns. Throws DistError, on every
// rank, when one has no such GPU or two share one, which NCCL does not do.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int device);

// One line: the NCCL version of the header that tpudist was compiled with, that of the library that
// is loaded, and whether they agree.
std::string nccl_version_report();

}  // namespace tpudist
