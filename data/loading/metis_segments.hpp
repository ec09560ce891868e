#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loading/graph_reduction.hpp"
#include "data/schema/graph.hpp"

namespace tpudist {

// Whether this program was built with METIS.
bool has_metis();

// [n] the segment of each node, from 0 on, with few edges between segments: by METIS (Karypis and
// Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", 1998), in K
// ways, with a fixed seed. A segment has 1 to `most_nodes` nodes (kFewestByMetis or more); larger
// parts of METIS are halved by node order until they fit. Edges have no direction here, and
// parallel edges count once. A function of its arguments, for one version of METIS. METIS runs in a
// child process, so that it cannot touch this process' signals and random numbers. Thread-safe.
// Throws std::logic_error without METIS, and Error if it fails.
std::vector<std::int32_t> metis_segments(const Graph& graph, std::int64_t most_nodes);

// XXH3 over the segments of a fixed graph, which identifies the version and build of METIS; nothing
// if METIS does not cut graphs. Throws as metis_segments.
std::optional<std::uint64_t> metis_hash(const GraphReduction& reduction);

// METIS fails on some graphs of thousands of nodes if segments have fewer nodes.
inline constexpr std::int64_t kFewestByMetis = 10;

}  // namespace tpudist
