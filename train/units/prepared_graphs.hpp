#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/array.hpp"
#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/node_cache.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/network/network.hpp"
#include "models/plans/refined_graph.hpp"

namespace tpudist {

// Values computed once per graph for all units.
struct PreparedArrays {
  Array<std::int32_t> node_class;        // [n] input row, one for equal features and opcode
  Array<std::int32_t> state_class;       // [states] of the graph's own state table
  GraphArrays input;                     // of the first node of each class
  std::optional<RefinedArrays> refined;  // with all edges; only if refined plans are wanted

  std::uint64_t bytes() const;

  // Calls body(array) for each array in a fixed order; P is PreparedArrays, const or not.
  template <typename P, typename Body>
  static void for_each(P& graph, Body&& body) {
    body(graph.node_class);
    body(graph.state_class);
    GraphArrays::for_each(graph.input, body);
    if (graph.refined) RefinedArrays::for_each(*graph.refined, body);
  }
};

// Throws DataError, with the graph's name, if it has more nodes than the network's layers allow.
void require_nodes(const Dataset& dataset, const Network& network, int graph);

// Prepares everything except `refined`. Throws DataError if the network cannot use the graph.
PreparedArrays prepare_input(const Dataset& dataset, const Network& network, int graph);

// The graph refined for networks of this shape; `node_class` as in PreparedArrays.
RefinedGraph refine_graph(const Graph& graph, const Array<std::int32_t>& node_class,
                          const PlanShape& shape);

// Approximate number of nodes of the graphs in one file. One core prepares these graphs in a
// fraction of a second; memory holds them until they are written.
inline constexpr std::int64_t kPreparedPartNodes = 65'536;

// The prepared graphs of a data set, in files that all processes of the node map. Each file has
// some graphs, so that processes that begin together make different files. Immutable; threads may
// share an object.
class PreparedFiles {
 public:
  // Opens or makes the files of all graphs. `refined`: with the arrays for refined plans. Null if
  // the data set is not shared (DatasetOptions::node_cache), if a graph cannot be prepared (its
  // first user gets the error), or if the files cannot be used (a warning says why).
  static std::unique_ptr<const PreparedFiles> open(const Dataset& dataset, const Network& network,
                                                   bool refined, ThreadPool& pool,
                                                   std::int64_t part_nodes = kPreparedPartNodes);

  // Arrays inside a file, which may outlive this object. Throws DataError.
  PreparedArrays read(int graph) const;
  std::uint64_t bytes() const;  // of all files

 private:
  struct Part {
    int first = 0, count = 0;  // graphs
    std::uint64_t key = 0;     // hash of everything that determines the bytes of the file
    NodeFile file;
  };
  PreparedFiles(const Dataset& dataset, const Network& network, bool refined,
                std::int64_t part_nodes);
  void attach(const Dataset& dataset, const Network& network, ThreadPool& pool);
  bool attach(Part& part, const Dataset& dataset, const Network& network, int patience_s,
              ThreadPool& pool) const;

  const PlanShape shape_;
  const bool refined_;
  std::vector<Part> parts_;
};

// The inputs of a graph for units.
struct PreparedGraph {
  Array<std::int32_t> node_class;   // [n] input row, one for equal features and opcode
  Array<std::int32_t> state_class;  // [states] of the graph's own state table
  std::shared_ptr<const GraphInput> input;
};

// The prepared graphs of a data set for a network. A graph is prepared at its first use and kept,
// or lies in a file that the processes of the node share. Thread-safe except share().
class PreparedGraphs {
 public:
  // Borrows both; they must outlive this object.
  PreparedGraphs(const Dataset& dataset, const Network& network);

  // Prepares all graphs now, in files that the processes of the node share, if they also share the
  // data set (PreparedFiles::open). `refined`: also for refined(). Call before the first use, or
  // not at all.
  void share(bool refined, ThreadPool& pool);

  // of() and refined() throw DataError if the network cannot use the graph.
  const PreparedGraph& of(int graph) const;
  const RefinedGraph& refined(int graph) const;  // with all edges

  std::uint64_t shared_bytes() const { return files_ ? files_->bytes() : 0; }

 private:
  struct Kept {
    std::once_flag prepare_once, refine_once;
    PreparedGraph graph;
    std::optional<RefinedArrays> found;  // from a file, until `refined` is made
    std::optional<const RefinedGraph> refined;
  };

  const Dataset& dataset_;
  const Network& network_;
  std::unique_ptr<const PreparedFiles> files_;
  std::unique_ptr<Kept[]> kept_;  // [dataset.size()]
};

}  // namespace tpudist
