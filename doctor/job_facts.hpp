#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tpudist {

// What one rank finds out about its machine. Plain data.
struct RankFacts {
  int rank = 0;
  std::string host;
  int node = 0, local_rank = 0;
  std::int64_t process = 0;
  int threads = 1;                          // given to it by `dist.threads: auto`
  std::vector<int> cores;                   // on which it may run, ascending
  double cpu_quota = 0;                     // in cores, of the control group; 0: none
  int machine_cores = 1;                    // online on the node
  std::int64_t machine_memory = 0;          // bytes of the node
  std::int64_t memory_limit = 0;            // bytes, of the process's control group; 0: none
  std::vector<std::string> gpus;            // ids of those it sees
  int device = -1;                          // index of the one it would use; -1: the CPU
  std::vector<std::string> nccl_libraries;  // loaded files of that name
  std::string mpi_threads;                  // "single", "funneled", "serialized" or "multiple"
  std::string kernels;                      // cpu_kernels()
  int srun_tasks = 1;                       // tasks of the Slurm step that started it; 1: none did
};

// The folder for runs, or its nearest parent that exists.
struct FolderFacts {
  std::string path;
  bool writable = false;
  bool locks = false;           // flock works; not tested if not writable
  std::int64_t free_bytes = 0;  // for this user
  std::string problem;          // why it is not writable
};

// One all_reduce of float32 over all ranks.
struct AllReduceSpeed {
  std::string memory;      // "host" or "device"
  std::int64_t bytes = 0;  // data per rank
  double seconds = 0;      // median of the calls, on rank 0
};

// Speed of copying memory on one node, in bytes per second, reads plus writes.
struct MemorySpeed {
  int node = 0, ranks = 0;
  double alone = 0;     // by its first rank while the others are idle
  double together = 0;  // sum over all its ranks at the same time
};

// All that `doctor` finds out about a job; the same on all ranks.
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
