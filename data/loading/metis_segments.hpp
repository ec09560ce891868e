#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loading/graph_reduction.hpp"
#include "data/schema/graph.hpp"

namespace tpudist {

class Dataset;

// Whether this program was built with METIS.
bool has_metis();

// [n] the segment of each node, from 0 on, none of them empty and none of more than `most_nodes` nodes
// (kFewestByMetis or more), such that few edges are between segments: by METIS (Karypis and Kumar, "A fast and high
// quality multilevel scheme for partitioning irregular graphs", 1998), in K ways, with a fixed seed.
// What METIS makes too large is halved and so on, by the order of its nodes. Edges have no
// direction here, and parallel ones count once. A function of its arguments, for one version of METIS.
// METIS runs in a child process: signals and random numbers of this one are left alone. Thread-safe.
// Throws std::logic_error where there is no METIS, and Error where it fails.
std::vector<std::int32_t> metis_segments(const Graph& graph, std::int64_t most_nodes);

// XXH3 over the segments of a fixed graph, by which METIS of another version or build is known; nothing
// where graphs are not cut by METIS. Throws as metis_segments.
std::optional<std::uint64_t> metis_hash(const GraphReduction& reduction);

// XXH3 over the segments of all graphs; nothing where they are not cut.
std::optional<std::uint64_t> segment_hash(const Dataset& data);

// METIS fails on some graphs of thousands of nodes if it is to make segments of fewer.
inline constexpr std::int64_t kFewestByMetis = 10;

}  // namespace tpudist
