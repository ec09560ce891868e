#include "dist/collectives/node_topology.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/process.hpp"
#include "dist/collectives/mpi_communicator.hpp"
#include "dist/collectives/shared_gpu.hpp"

namespace tpudist {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The ranks of this node. A world that is not MPI has one rank.
std::unique_ptr<Communicator> node_of(Communicator& world) {
  if (auto* mpi = dynamic_cast<MpiComm*>(&world)) return mpi->split_by_node();
  if (world.size() == 1) return make_self_communicator();
  throw DistError(fmt::format("place_rank needs an MPI communicator, not '{}'", world.name()));
}

// Nodes are numbered in the order of their first ranks.
void number_nodes(Communicator& world, Communicator& node, NodeTopology& topology) {
  std::int64_t leader = world.rank();
  node.broadcast(std::span(&leader, 1), 0);
  std::vector<std::int64_t> leaders =
      all_gather_variable(world, std::span<const std::int64_t>(&leader, 1));
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  topology.nodes = static_cast<int>(leaders.size());
  topology.node =
      static_cast<int>(std::lower_bound(leaders.begin(), leaders.end(), leader) - leaders.begin());
}

// The device of this rank, -1 if its node has none left for it.
int own_device(Communicator& node, const std::vector<Device>& devices) {
  std::vector<int> usable;
  std::string ids;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!is_usable(devices[i])) continue;
    usable.push_back(static_cast<int>(i));
    ids += devices[i].id + " ";
  }
  std::vector<std::vector<std::string>> visible;
  for (const std::string& line : all_gather_text(node, ids)) visible.push_back(words(line));
  const int own = share_devices(visible)[node.rank()];
  if (own >= 0) return usable[own];
  return ranks_share_gpu() && !usable.empty() ? usable[node.rank() % usable.size()] : -1;
}

// Assigns each rank of a node a device of its own.
struct Matching {
  const std::vector<std::vector<std::string>>& visible;
  std::map<std::string, std::size_t> owners = {};
  std::vector<int> device = std::vector<int>(visible.size(), -1);

  // Takes the first free device that the rank sees, or else the first one whose owner can take
  // another. `tried`: devices that owners cannot give up.
  bool place(std::size_t rank, std::set<std::string>& tried) {
    const std::vector<std::string>& ids = visible[rank];
    const auto take = [&](std::size_t i) {
      owners[ids[i]] = rank;
      device[rank] = static_cast<int>(i);
      return true;
    };
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!owners.contains(ids[i])) return take(i);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (tried.insert(ids[i]).second && place(owners[ids[i]], tried)) return take(i);
    }
    return false;
  }
};

}  // namespace

std::vector<int> share_devices(const std::vector<std::vector<std::string>>& visible) {
  Matching matching{visible};
  for (std::size_t rank = 0; rank < visible.size(); ++rank) {
    std::set<std::string> tried;
    matching.place(rank, tried);
  }
  return matching.device;
}

NodeTopology place_rank(Communicator& world, std::string_view device) {
  if (device != "auto" && device != "cpu" && device != "cuda") {
    throw ConfigError(fmt::format("device '{}' is not known; choose auto, cpu or cuda", device));
  }
  const std::unique_ptr<Communicator> node = node_of(world);
  NodeTopology topology;
  topology.local_rank = node->rank();
  topology.local_ranks = node->size();
  number_nodes(world, *node, topology);
  if (device == "cpu") return topology;

  VisibleDevices seen;
  run_on_all_ranks(world, [&] { seen = visible_devices(); });
  const int own = own_device(*node, seen.devices);
  const std::string missing = own >= 0
                                  ? ""
                                  : fmt::format("node {} ('{}'): {}", topology.node, host_name(),
                                                why_no_device(seen, topology.local_ranks));
  run_on_all_ranks(world, [&] {
    if (device != "cuda" || own >= 0) return;
    throw ConfigError(fmt::format(
        "device: cuda: {}; start one rank for each GPU, or choose device: cpu or auto", missing));
  });
  // Either all ranks take a GPU or none: a rank on a CPU would delay the others.
  for (const std::string& reason : all_gather_text(world, missing)) {
    if (reason.empty()) continue;
    // If no node has a driver, nobody expects a GPU.
    std::int64_t expected = seen.problem == kNoDriver ? 0 : 1;
    world.all_reduce(std::span(&expected, 1), ReduceOp::max);
    if (world.rank() == 0) {
      spdlog::log(expected > 0 ? spdlog::level::warn : spdlog::level::debug,
                  "device: auto takes the CPU: {}", reason);
    }
    return topology;
  }
  topology.device = own;
  topology.gpu = seen.devices[own];
  return topology;
}

}  // namespace tpudist
