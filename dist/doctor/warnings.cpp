#include "dist/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/numbers.hpp"

namespace tpudist {
namespace {

using Warnings = std::vector<DoctorWarning>;
using Node = std::vector<const RankFacts*>;

// Seconds that every exchange of a step would take, too. A normal message between two processes
// takes a microsecond.
constexpr double kSlowLatency = 2e-3;

// Seconds that mpirun may take to give up a node: those of slurm/train.sbatch.
constexpr int kMpirunPatience = 120;

std::string ranks_text(std::size_t count) {
  return fmt::format("{} rank{}", count, count == 1 ? "" : "s");
}

std::size_t common_cores(const Node& node) {
  std::set<int> cores;
  for (const RankFacts* rank : node) cores.insert(rank->cores.begin(), rank->cores.end());
  return cores.size();
}

void warn_of_srun(const JobFacts& facts, Warnings& warnings) {
  const int tasks = facts.ranks.front().srun_tasks;
  if (facts.ranks.size() > 1 || tasks <= 1) return;
  warnings.push_back({"no_pmix",
                      fmt::format("srun started {} tasks, but MPI sees each of them alone", tasks),
                      "start them with srun --mpi=pmix (`srun --mpi=list` shows what it has), or "
                      "with mpirun",
                      true});
}

void warn_of_mpi_threads(const JobFacts& facts, Warnings& warnings) {
  for (const RankFacts& rank : facts.ranks) {
    if (rank.mpi_threads != "single") continue;
    warnings.push_back({"mpi_threads",
                        fmt::format("MPI gives rank {} no threads (level: single)", rank.rank),
                        "take an MPI that was built with at least MPI_THREAD_FUNNELED", true});
    return;
  }
}

void warn_of_folder(const FolderFacts& folder, Warnings& warnings) {
  if (!folder.writable) {
    warnings.push_back({"folder_not_writable",
                        fmt::format("{} cannot be written: {}", folder.path, folder.problem),
                        "give another folder with --run-dir", true});
    return;
  }
  if (!folder.locks) {
    warnings.push_back({"no_file_locks",
                        fmt::format("{} is on a file system without flock", folder.path),
                        "two runs in one folder would not notice each other, and `sweep` needs "
                        "locks: choose another folder, or mount with locks (Lustre: -o flock)"});
  }
  if (folder.free_bytes < kRunSpace) {
    warnings.push_back({"little_space",
                        fmt::format("{} has {} left", folder.path,
                                    format_bytes(static_cast<std::uint64_t>(folder.free_bytes))),
                        "make room, or lower train.keep_checkpoints"});
  }
}

void warn_of_cores(const Node& node, Warnings& warnings) {
  const RankFacts& first = *node.front();
  const std::size_t cores = common_cores(node);
  const auto machine = static_cast<std::size_t>(first.machine_cores);
  if (node.size() > 1 && cores == 1) {
    warnings.push_back({"one_core",
                        fmt::format("all {} ranks on {} are bound to core {}", node.size(),
                                    first.host, first.cores.front()),
                        "start with mpirun --bind-to none, or srun --cpus-per-task"});
  } else if (node.size() > cores) {
    warnings.push_back(
        {"more_ranks_than_cores",
         fmt::format("{} on {}, which gives them {} cores", ranks_text(node.size()), first.host,
                     cores),
         "ranks that share a core wait for each other in every step: start fewer ranks (mpirun "
         "--oversubscribe allows more than there are slots; it makes no cores)"});
  } else if (first.cpu_quota > 0 && first.cpu_quota < static_cast<double>(node.size())) {
    warnings.push_back(
        {"cpu_quota",
         fmt::format("{} on {} with a CPU quota of {:.3g} (control group)", ranks_text(node.size()),
                     first.host, first.cpu_quota),
         fmt::format("the system stops them in every tenth of a second: raise the quota (docker "
                     "--cpus, limits.cpu of Kubernetes, cpu.max){}",
                     node.size() > 1 ? ", or start fewer ranks" : "")});
  } else if (2 * cores <= machine) {
    warnings.push_back({"idle_cores",
                        fmt::format("{} on {} may use {} of its {} cores", ranks_text(node.size()),
                                    first.host, cores, machine),
                        "if they are yours: mpirun --bind-to none or srun --cpus-per-task, or more "
                        "ranks"});
  }
}

void warn_of_memory(const Node& node, Warnings& warnings) {
  const RankFacts& first = *node.front();
  const auto need = static_cast<std::int64_t>(node.size()) * kRankMemory;
  const std::int64_t limit = first.memory_limit > 0
                                 ? std::min(first.memory_limit, first.machine_memory)
                                 : first.machine_memory;
  if (limit >= need || limit == 0) return;
  warnings.push_back(
      {"little_memory",
       fmt::format("{} may use {} ({}) for {}", first.host,
                   format_bytes(static_cast<std::uint64_t>(limit)),
                   limit == first.memory_limit ? "limit of the control group" : "all it has",
                   ranks_text(node.size())),
       "a rank takes about 1 GiB, and more for large graphs (`tpudist train FILE --dry-run`): "
       "start fewer ranks, raise the limit (srun --mem), or share data (data.cache_dir=auto)"});
}

void warn_of_gpus(const Node& node, bool runs_on_gpus, Warnings& warnings) {
  const RankFacts& first = *node.front();
  std::map<std::string, std::vector<int>> takers;
  std::set<std::string> seen;
  std::size_t without = 0;
  for (const RankFacts* rank : node) {
    seen.insert(rank->gpus.begin(), rank->gpus.end());
    if (rank->device < 0) ++without;
    if (rank->device >= 0) takers[rank->gpus[rank->device]].push_back(rank->rank);
  }
  for (const auto& [gpu, ranks] : takers) {
    if (ranks.size() < 2) continue;
    warnings.push_back(
        {"shared_gpu",
         fmt::format("ranks {} on {} share GPU {}", fmt::join(ranks, ", "), first.host, gpu),
         "NCCL refuses that: start one rank for each GPU"});
  }
  if (!seen.empty() && !runs_on_gpus) {
    warnings.push_back({"no_kernels",
                        fmt::format("{} has {} GPU{}, and this program was built without nvcc, so "
                                    "that networks run on the CPU",
                                    first.host, seen.size(), seen.size() == 1 ? "" : "s"),
                        "build it where nvcc is found"});
  } else if (!seen.empty() && without > 0) {
    warnings.push_back(
        {"unused_gpus",
         fmt::format("{} has {} GPU{} for {}: with dist.device: auto all of them "
                     "take the CPU",
                     first.host, seen.size(), seen.size() == 1 ? "" : "s", ranks_text(node.size())),
         "start one rank for each GPU on every node"});
  }
}

void warn_of_nccl(const JobFacts& facts, Warnings& warnings) {
  for (const RankFacts& rank : facts.ranks) {
    if (rank.nccl_libraries.size() < 2) continue;
    warnings.push_back(
        {"two_nccls",
         fmt::format("rank {} has loaded {} NCCLs: {}", rank.rank, rank.nccl_libraries.size(),
                     fmt::join(rank.nccl_libraries, ", ")),
         "leave one: unset LD_LIBRARY_PATH and LD_PRELOAD, or build against the one "
         "that LibTorch brings"});
    break;
  }
  if (facts.nccl_agrees) return;
  warnings.push_back({"nccl_header",
                      "tpudist was compiled with the header of another NCCL than is loaded",
                      "build again where include and library folders belong together"});
}

void warn_of_kernels(const JobFacts& facts, Warnings& warnings) {
  const RankFacts& first = facts.ranks.front();
  for (const RankFacts& rank : facts.ranks) {
    if (rank.kernels == first.kernels) continue;
    warnings.push_back({"mixed_cpus",
                        fmt::format("rank {} computes with other kernels ({}) than rank 0 ({})",
                                    rank.rank, rank.kernels, first.kernels),
                        "use nodes of one kind, or accept that bits depend on who computes what "
                        "with dist.mixed_cpus=warn"});
    return;
  }
}

void warn_of_mpirun(const JobFacts& facts, Warnings& warnings) {
  const RankFacts& first = facts.ranks.front();
  const int patience = first.mpirun_patience;
  const bool one_node = std::ranges::all_of(
      facts.ranks, [&](const RankFacts& rank) { return rank.node == first.node; });
  if (one_node || (patience >= 0 && patience <= kMpirunPatience)) return;
  warnings.push_back(
      {"slow_mpirun",
       patience < 0 ? "mpirun never gives up a node that does not answer"
                    : fmt::format("mpirun gives up a node that does not answer only after {} s",
                                  patience),
       "a lost node ends the job late, and if dist.timeout is shorter, mpirun then waits for a "
       "quarter of an hour: mpirun --mca oob_tcp_keepalive_time 60 --mca oob_tcp_keepalive_intvl "
       "10 --mca oob_tcp_keepalive_probes 6"});
}

void warn_of_latency(const JobFacts& facts, Warnings& warnings) {
  for (const JobFacts::AllReduceSpeed& speed : facts.all_reduce) {
    if (speed.bytes > 8 || speed.seconds < kSlowLatency) continue;
    warnings.push_back({"slow_messages",
                        fmt::format("an all-reduce of {} bytes takes {} ({} memory)", speed.bytes,
                                    format_seconds(speed.seconds), speed.memory),
                        "ranks wait for a core or for the network: look for other programs on the "
                        "nodes, and at what MPI uses (mpirun --mca pml_base_verbose 10)"});
  }
}

}  // namespace

std::vector<DoctorWarning> doctor_warnings(const JobFacts& facts) {
  Warnings warnings;
  warn_of_srun(facts, warnings);
  warn_of_mpi_threads(facts, warnings);
  warn_of_folder(facts.folder, warnings);
  std::map<int, Node> nodes;
  for (const RankFacts& rank : facts.ranks) nodes[rank.node].push_back(&rank);
  for (const auto& [number, node] : nodes) {
    warn_of_cores(node, warnings);
    warn_of_memory(node, warnings);
    warn_of_gpus(node, facts.runs_on_gpus, warnings);
  }
  warn_of_nccl(facts, warnings);
  warn_of_kernels(facts, warnings);
  warn_of_mpirun(facts, warnings);
  warn_of_latency(facts, warnings);
  std::ranges::stable_sort(warnings, std::greater(), &DoctorWarning::broken);
  return warnings;
}

}  // namespace tpudist
