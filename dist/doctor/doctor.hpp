#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dist/collectives/communicator.hpp"

namespace tpudist {

// What one rank finds out about its machine. Plain data.
struct RankFacts {
  int rank = 0;
  std::string host;
  int node = 0, local_rank = 0;
  std::int64_t process = 0;
  int threads = 1;                          // that `dist.threads: auto` gives to the rank
  std::vector<int> cores;                   // that the rank may use, ascending
  double cpu_quota = 0;                     // cores that the control group allows; 0: no limit
  int machine_cores = 1;                    // online cores of the node
  std::int64_t machine_memory = 0;          // bytes of the node
  std::int64_t memory_limit = 0;            // bytes that the control group allows; 0: no limit
  std::vector<std::string> gpus;            // ids of the GPUs that the rank sees
  int device = -1;                          // index of the GPU that it would use; -1: the CPU
  std::vector<std::string> nccl_libraries;  // loaded files of that name
  std::string mpi_threads;                  // "single", "funneled", "serialized" or "multiple"
  std::string kernels;                      // cpu_kernels(Precision::bf16)
  int srun_tasks = 1;                       // tasks of the Slurm step that started it; 1: none did
  int mpirun_patience = 0;  // seconds until mpirun gives up a node that does not answer; 0: no mpirun
                            // of Open MPI 4 started the rank; negative: never
};

// The folder for runs, or its nearest parent that exists.
struct FolderFacts {
  std::string path;
  bool writable = false;
  bool locks = false;           // flock works; not tested if not writable
  std::int64_t free_bytes = 0;  // for this user
  std::string problem;          // why it is not writable
};

// All that `doctor` finds out about a job; the same on all ranks.
struct JobFacts {
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

  std::vector<RankFacts> ranks;                               // at least one
  std::vector<std::pair<std::string, std::string>> versions;  // of rank 0: name, version
  bool nccl_agrees = true;                                    // header and library
  bool runs_on_gpus = true;                                   // built with nvcc
  FolderFacts folder;                                         // of rank 0
  std::vector<AllReduceSpeed> all_reduce;  // by memory and size; empty for one rank
  std::vector<MemorySpeed> memory;         // by node
};

// A problem that makes a job slow or ends it, and what to do about it.
struct DoctorWarning {
  std::string kind;     // a short, stable name, for programs
  std::string what;     // one sentence without a full stop
  std::string advice;   // likewise
  bool broken = false;  // training is impossible this way
};

// Least memory a rank is assumed to need: that of the demo's five members, rounded up.
inline constexpr std::int64_t kRankMemory = std::int64_t{1} << 30;
// Space that a run folder should have left: checkpoints and predictions of a few runs.
inline constexpr std::int64_t kRunSpace = std::int64_t{1} << 30;

// All problems, the broken ones first. A pure function.
std::vector<DoctorWarning> doctor_warnings(const JobFacts& facts);

// Turns the facts of one rank into text, to send to the others, and back. Parsing throws what
// nlohmann::json throws.
std::string rank_facts_text(const RankFacts& facts);
RankFacts parse_rank_facts(const std::string& text);

// "0-3, 8"; `numbers` ascending.
std::string number_ranges(const std::vector<int>& numbers);

// Bytes per second that each rank sends and receives for an all_reduce: 2 (R - 1) / R of its data
// (the "bus bandwidth" of NVIDIA's nccl-tests).
double bus_bandwidth(const JobFacts::AllReduceSpeed& speed, std::size_t ranks);

// Aligned tables for people.
std::string doctor_text(const JobFacts& facts, const std::vector<DoctorWarning>& warnings);
// The same as JSON for programs: ranks, versions, folder, all_reduce, memory, warnings. Units are
// bytes and seconds.
nlohmann::json doctor_json(const JobFacts& facts, const std::vector<DoctorWarning>& warnings);

// What this process can find out alone: host, process, cores and memory with their limits, GPUs,
// libraries, MPI's thread level, Slurm. MPI must be running. The caller sets rank, node, threads,
// device and kernels.
RankFacts find_surroundings();

// An MCA parameter as Open MPI 4 reads it: from the environment (OMPI_MCA_name), else from the first
// of the files (lines `name = value`) that has it; `otherwise` if none has.
int mca_parameter(const std::string& name, std::span<const std::filesystem::path> files,
                  int otherwise);

// Tests the folder or its nearest existing parent: writes, locks and removes a file there.
FolderFacts try_folder(const std::filesystem::path& folder);

// The mapped files whose names begin with `name`, once each. `maps`: content of /proc/self/maps.
std::vector<std::string> loaded_libraries(std::string_view maps, std::string_view name);

// Times all_reduce of float32 over all ranks, from 8 B to 64 MiB in factors of eight; takes a
// second or two. The first calls of each size do not count. Empty for one rank. `communicator`:
// host or device memory. Collective.
std::vector<JobFacts::AllReduceSpeed> time_all_reduce(Communicator& communicator);

// Times copies of memory larger than any cache (2 x 64 MiB per rank), first by one rank of each
// node, then by all. `node`: the ranks of this rank's node. `number`: the node's number. Collective
// over `world`.
std::vector<JobFacts::MemorySpeed> time_memory(Communicator& world, Communicator& node, int number);

// The median; the upper one if the number of values is even. Needs at least one value.
double upper_median(std::vector<double> values);

}  // namespace tpudist
