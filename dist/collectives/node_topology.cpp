#include "dist/collectives/node_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/error.hpp"
#include "core/process.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/mpi_communicator.hpp"
#include "dist/collectives/self_communicator.hpp"

namespace tpudist {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The ranks of this node. A world that is not MPI has one rank, which is alone on its node.
std::unique_ptr<Communicator> node_of(Communicator& world) {
  if (auto* mpi = dynamic_cast<MpiComm*>(&world)) return mpi->split_by_node();
  if (world.size() == 1) return make_self_communicator();
  throw DistError(fmt::format("place_rank needs an MPI communicator, not '{}'", world.name()));
}

// Nodes are numbered in the order of their first ranks.
void number_nodes(Communicator& world, Communicator& node, NodeTopology& place) {
  std::int64_t leader = world.rank();
  node.broadcast(std::span(&leader, 1), 0);
  std::vector<std::int64_t> leaders =
      all_gather_variable(world, std::span<const std::int64_t>(&leader, 1));
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  place.nodes = static_cast<int>(leaders.size());
  place.node =
      static_cast<int>(std::lower_bound(leaders.begin(), leaders.end(), leader) - leaders.begin());
}

// The device of this rank, -1 where its node has none left for it.
int own_device(Communicator& node, const std::vector<std::string>& devices) {
  std::vector<std::vector<std::string>> visible;
  for (const std::string& line :
       all_gather_text(node, fmt::format("{}", fmt::join(devices, " ")))) {
    visible.push_back(words(line));
  }
  return share_devices(visible)[node.rank()];
}

}  // namespace

std::vector<int> share_devices(const std::vector<std::vector<std::string>>& visible) {
  std::vector<std::string> taken;
  std::vector<int> device(visible.size(), -1);
  for (std::size_t rank = 0; rank < visible.size(); ++rank) {
    for (std::size_t i = 0; i < visible[rank].size() && device[rank] < 0; ++i) {
      if (std::find(taken.begin(), taken.end(), visible[rank][i]) != taken.end()) continue;
      taken.push_back(visible[rank][i]);
      device[rank] = static_cast<int>(i);
    }
  }
  return device;
}

NodeTopology place_rank(Communicator& world, std::string_view device) {
  if (device != "auto" && device != "cpu" && device != "cuda") {
    throw ConfigError(fmt::format("device '{}' is not known; choose auto, cpu or cuda", device));
  }
  const std::unique_ptr<Communicator> node = node_of(world);
  NodeTopology place;
  place.local_rank = node->rank();
  place.local_ranks = node->size();
  number_nodes(world, *node, place);
  if (device == "cpu") return place;

  std::vector<std::string> devices;
  run_on_all_ranks(world, [&] { devices = visible_devices(); });
  const int own = own_device(*node, devices);
  run_on_all_ranks(world, [&] {
    if (device != "cuda" || own >= 0) return;
    throw ConfigError(fmt::format(
        "node {} ('{}') has no GPU left for local rank {} of {} (it sees {}); start fewer ranks "
        "on it, or choose device: cpu or auto",
        place.node, host_name(), place.local_rank, place.local_ranks, devices.size()));
  });
  // All ranks or none: a rank on a CPU would delay the others.
  std::int64_t everywhere = own >= 0 ? 1 : 0;
  world.all_reduce(std::span(&everywhere, 1), ReduceOp::min);
  if (everywhere) place.device = own;
  return place;
}

}  // namespace tpudist
