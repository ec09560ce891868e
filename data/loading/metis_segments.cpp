#include "data/loading/metis_segments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"

#ifdef TPUDIST_METIS
#include <metis.h>
#endif

namespace tpudist {

#ifdef TPUDIST_METIS
namespace {

using Parts = std::vector<std::vector<std::int32_t>>;  // nodes, ascending

// METIS makes parts that are up to 3 % larger than the mean.
constexpr std::int64_t kPercent = 103;

// Both directions of each edge once, sorted by the first node; self loops are left out.
std::vector<std::pair<std::int32_t, std::int32_t>> undirected(std::span<const std::int32_t> edges) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::size_t e = 0; e < edges.size(); e += 2) {
    if (edges[e] == edges[e + 1]) continue;
    pairs.emplace_back(edges[e], edges[e + 1]);
    pairs.emplace_back(edges[e + 1], edges[e]);
  }
  std::ranges::sort(pairs);
  const auto doubles = std::ranges::unique(pairs);
  pairs.erase(doubles.begin(), doubles.end());
  return pairs;
}

// METIS ends the process if it is asked for one part, and fails without edges: both are not asked.
Parts partition(const Graph& graph, std::int64_t count) {
  const std::int64_t nodes = graph.nodes;
  const auto pairs = undirected(graph.edge_index);
  Parts parts(static_cast<std::size_t>(count));
  if (count == 1 || pairs.empty()) {
    for (std::int64_t node = 0; node < nodes; ++node)
      parts[static_cast<std::size_t>(node * count / nodes)].push_back(
          static_cast<std::int32_t>(node));
    return parts;
  }
  std::vector<idx_t> begin{0}, neighbours, part(static_cast<std::size_t>(nodes), 0);
  for (std::int64_t node = 0; node < nodes; ++node) {
    while (neighbours.size() < pairs.size() && pairs[neighbours.size()].first == node)
      neighbours.push_back(pairs[neighbours.size()].second);
    begin.push_back(static_cast<idx_t>(neighbours.size()));
  }
  idx_t vertices = static_cast<idx_t>(nodes), constraints = 1, wanted = static_cast<idx_t>(count),
        cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  // It draws by rand(), which all threads share.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const int status =
      METIS_PartGraphKway(&vertices, &constraints, begin.data(), neighbours.data(), nullptr,
                          nullptr, nullptr, &wanted, nullptr, nullptr, options, &cut, part.data());
  if (status != METIS_OK)
    throw Error(ErrorKind::failed,
                fmt::format("{}: METIS failed with {} on its {} nodes: give "
                            "data.segments.by=consecutive, or more data.segments.nodes",
                            graph.name, status, nodes));
  for (std::size_t node = 0; node < part.size(); ++node)
    parts[static_cast<std::size_t>(part[node])].push_back(static_cast<std::int32_t>(node));
  return parts;
}

}  // namespace

bool has_metis() {
  return true;
}

std::vector<std::int32_t> metis_segments(const Graph& graph, std::int64_t most_nodes) {
  const std::int64_t nodes = graph.nodes;
  const std::int64_t count =
      nodes <= most_nodes
          ? 1
          : std::min((nodes * kPercent + 100 * most_nodes - 1) / (100 * most_nodes), nodes);
  std::vector<std::int32_t> segment(static_cast<std::size_t>(nodes), 0);
  std::int32_t next = 0;
  for (const std::vector<std::int32_t>& part : partition(graph, count)) {
    const auto size = static_cast<std::int64_t>(part.size());
    std::int64_t pieces = 1;
    while (size > pieces * most_nodes) pieces *= 2;
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::int64_t first = size * i / pieces, end = size * (i + 1) / pieces;
      for (std::int64_t at = first; at < end; ++at)
        segment[static_cast<std::size_t>(part[static_cast<std::size_t>(at)])] = next;
      next += first < end;
    }
  }
  return segment;
}

#else

bool has_metis() {
  return false;
}

std::vector<std::int32_t> metis_segments(const Graph&, std::int64_t) {
  throw std::logic_error("built without METIS");
}

#endif

}  // namespace tpudist
