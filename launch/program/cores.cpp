#include "launch/program/cores.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/numbers.hpp"

namespace tpudist {
namespace {

// The CPU affinity of a process; 0: of this process. "1" if unknown.
std::string mask_of(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(process, sizeof set, &set) != 0) return "1";
  std::string mask;
  for (int core = 0; core < CPU_SETSIZE; ++core) mask += CPU_ISSET(core, &set) ? '1' : '0';
  return mask.substr(0, mask.rfind('1') + 1);
}

int cores_in(const std::string& mask) {
  return static_cast<int>(std::ranges::count(mask, '1'));
}

// The mask of the cores that at least one rank may use.
std::string all_of(const std::vector<std::string>& masks) {
  std::string all;
  for (const std::string& mask : masks) {
    all.resize(std::max(all.size(), mask.size()), '0');
    for (std::size_t core = 0; core < mask.size(); ++core)
      all[core] = std::max(all[core], mask[core]);
  }
  return all;
}

}  // namespace

int share_of_cores(const std::vector<std::string>& masks, int rank, double quota) {
  double share = 0;
  for (std::size_t core = 0; core < masks[rank].size(); ++core) {
    if (masks[rank][core] != '1') continue;
    const auto users = std::ranges::count_if(
        masks, [core](const std::string& mask) { return core < mask.size() && mask[core] == '1'; });
    share += 1.0 / static_cast<double>(users);
  }
  if (quota > 0) share = std::min(share, quota / static_cast<double>(masks.size()));
  return std::max(1, static_cast<int>(share + 1e-6));
}

std::vector<std::string> core_masks(Communicator& world, const NodeTopology& topology) {
  const std::string node = fmt::format("{} ", topology.node);
  std::vector<std::string> masks;
  for (const std::string& line : all_gather_text(world, node + mask_of(0)))
    if (line.starts_with(node)) masks.push_back(line.substr(node.size()));
  return masks;
}

int cores_of_binding_mpirun() {
  const char* bound = std::getenv("OMPI_MCA_orte_bound_at_launch");  // of Open MPI 4
  if (!bound || std::string_view(bound) != "1") return 0;
  return cores_in(mask_of(getppid()));
}

std::string core_warning(const std::vector<std::string>& masks, int rank, int threads, int unbound,
                         double quota) {
  const int own = cores_in(masks[rank]), all = cores_in(all_of(masks));
  const auto ranks = static_cast<int>(masks.size());
  if (threads > own) {
    return fmt::format("{} on {}: {}", counted(threads, "thread"), counted(own, "core"),
                       unbound > own ? "start with mpirun --bind-to none"
                                     : "ask for fewer (dist.threads), or for more cores (srun "
                                       "--cpus-per-task)");
  }
  if (quota > 0 && quota < threads * ranks) {
    return fmt::format(
        "{} with {} each on a CPU quota of {:.3g} (control group): raise it (docker --cpus, "
        "cpu.max){}",
        counted(ranks, "rank"), counted(threads, "thread"), quota,
        threads * ranks > 1 ? ", or start fewer (dist.threads)" : "");
  }
  if (2 * all <= unbound) {
    return fmt::format("mpirun bound {} to {} of {}: start with --bind-to none, or with more ranks",
                       counted(ranks, "rank"), counted(all, "core"), unbound);
  }
  return "";
}

std::string crowd_note(const std::vector<std::string>& masks) {
  const int all = cores_in(all_of(masks));
  const auto ranks = static_cast<int>(masks.size());
  if (ranks <= all) return "";
  return fmt::format("{} share {} of this node: one rank for each core is faster",
                     counted(ranks, "rank"), counted(all, "core"));
}

}  // namespace tpudist
