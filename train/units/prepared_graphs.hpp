#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "models/network.hpp"
#include "models/plans/refined_graph.hpp"
#include "train/units/prepared_files.hpp"

namespace tpudist {

// The inputs of a graph for units.
struct PreparedGraph {
  Array<std::int32_t> node_class;   // [n] equal for nodes of equal features and opcode: the row of
                                    // the input
  Array<std::int32_t> state_class;  // [states] of the graph's own state table
  std::shared_ptr<const GraphInput> input;
};

// The prepared graphs of a data set for a network. Each is prepared at its first use and kept, or
// lies in files that the processes of the node share. Thread-safe except share().
class PreparedGraphs {
 public:
  // Borrows both; they must outlive this object.
  PreparedGraphs(const Dataset& dataset, const Network& network);

  // Prepares all graphs now, in files that the processes of the node share, if the data set is
  // shared too (PreparedFiles::open). `refined`: also for refined(). Call it before the first use,
  // or not at all.
  void share(bool refined, ThreadPool& pool);

  // Both throw DataError if the network cannot use the graph.
  const PreparedGraph& of(int graph) const;
  const RefinedGraph& refined(int graph) const;  // with all edges
  // The graph with only these edges; it is not kept.
  RefinedGraph refine(int graph, std::span<const std::int32_t> edges) const;

  std::uint64_t shared_bytes() const { return files_ ? files_->bytes() : 0; }

 private:
  struct Kept {
    std::once_flag prepare_once, refine_once;
    PreparedGraph graph;
    std::optional<RefinedArrays> found;  // from a file, until `refined` is made from it
    std::optional<const RefinedGraph> refined;
  };

  const Dataset& dataset_;
  const Network& network_;
  std::unique_ptr<const PreparedFiles> files_;
  std::unique_ptr<Kept[]> kept_;  // [dataset.size()]
};

}  // namespace tpudist
