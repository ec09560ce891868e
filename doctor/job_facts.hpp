#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tpudist {

// What one rank finds around it. Plain data.
struct RankFacts {
  int rank = 0;
  std::string host;
  int node = 0, local_rank = 0;
  std::int64_t process = 0;
  int threads = 1;                          // that `dist.threads: auto` gives it
  std::vector<int> cores;                   // that it may run on, rising
  int machine_cores = 1;                    // that the node has online
  std::int64_t machine_memory = 0;          // bytes of the node
  std::int64_t memory_limit = 0;            // bytes, of the process's control group; 0: none
  std::vector<std::string> gpus;            // ids of those that it sees
  int device = -1;                          // of these, the one that it would take; -1: the CPU
  std::vector<std::string> nccl_libraries;  // files of that name that are loaded
  std::string mpi_threads;                  // "single", "funneled", "serialized" or "multiple"
  std::string kernels;                      // cpu_kernels()
  int srun_tasks = 1;                       // of the Slurm step that started it; 1: none did
};

// The folder in which runs are to lie, or the next one above it that is there.
struct FolderFacts {
  std::string path;
  bool writable = false;
  bool locks = false;           // flock works; not tried where it is not writable
  std::int64_t free_bytes = 0;  // for this user
  std::string problem;          // why it is not writable
};

// One all_reduce of float32 over all ranks.
struct AllReduceSpeed {
  std::string memory;      // "host" or "device"
  std::int64_t bytes = 0;  // of the data of a rank
  double seconds = 0;      // median of the calls, on rank 0
};

// Copying memory on one node, bytes read and written a second.
struct MemorySpeed {
  int node = 0, ranks = 0;
  double alone = 0;     // its first rank, the others being idle
  double together = 0;  // sum of all of its ranks, at the same time
};

// What `doctor` knows of a job, the same on all ranks.
struct JobFacts {
  std::vector<RankFacts> ranks;                               // at least one
  std::vector<std::pair<std::string, std::string>> versions;  // of rank 0: name, version
  bool nccl_agrees = true;                                    // header and library
  bool runs_on_gpus = true;                                   // built with nvcc
  FolderFacts folder;                                         // of rank 0
  std::vector<AllReduceSpeed> all_reduce;  // by memory and size; empty for one rank
  std::vector<MemorySpeed> memory;         // by node
};

}  // namespace tpudist
