#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/cache/node_file.hpp"
#include "data/loading/dataset.hpp"
#include "models/network.hpp"
#include "train/units/prepared_arrays.hpp"

namespace tpudist {

// Approximate number of nodes of the graphs in one file: one core prepares them in a fraction of a
// second, and they are held in memory until they are written.
inline constexpr std::int64_t kPreparedPartNodes = 65'536;

// The prepared graphs of a data set, in files that all processes of the node map. Each file has
// some graphs, so processes that begin together make different files. Immutable; threads may share
// it.
class PreparedFiles {
 public:
  // Opens the files of all graphs, or makes them. `refined`: with the arrays for refined plans.
  // Null if the data set is not shared (DatasetOptions::node_cache), if a graph cannot be prepared
  // (its first user gets the error), or if the files cannot be used (a warning says why).
  static std::unique_ptr<const PreparedFiles> open(const Dataset& dataset, const Network& network,
                                                   bool refined, ThreadPool& pool,
                                                   std::int64_t part_nodes = kPreparedPartNodes);

  // Arrays inside a file; they may outlive this object. Throws DataError.
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

}  // namespace tpudist
