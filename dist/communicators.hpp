#pragma once

#include <memory>
#include <string_view>

#include "dist/communicator.hpp"

namespace tpudist {

// A group of one: every call is a copy.
std::unique_ptr<Communicator> make_self_communicator(MemoryKind memory = MemoryKind::host);

// Initialises MPI (FUNNELED) in the constructor unless it is already, and finalises it in the destructor when it did. Started
// without mpirun it is a world of one. Only one may live at a time.
class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // The world, host memory.
  std::unique_ptr<Communicator> world() const;
  // Kills all ranks with this exit code.
  [[noreturn]] static void abort(int exit_code);
};

// Place of this rank on its node, by MPI_Comm_split_type(SHARED), and the GPU that follows from it.
struct NodePlace {
  int node = 0, nodes = 1;              // number of this node
  int local_rank = 0, local_ranks = 1;  // rank within the node
  int device = -1;                      // CUDA device index, -1 = CPU
};

// `device` is "auto", "cpu" or "cuda". With "cuda" (or auto, when every node has a GPU for each of its ranks) each rank takes the GPU of its
// local rank. Throws ConfigError when "cuda" is asked for and a node has fewer GPUs than ranks.
NodePlace place_rank(Communicator& world, std::string_view device);

// NCCL over the ranks of `world` on their devices; the NCCL id travels by `world`. Throws DistError without a GPU or without NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int device);

}  // namespace tpudist
