#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_pool.hpp"
#include "data/loading/node_file.hpp"
#include "data/loading/open_graph.hpp"

namespace tpudist {

struct DatasetOptions;

// Where the processes of a node share one copy of the shards' data (`data.cache_dir`).
struct NodeCacheOptions {
  std::filesystem::path place;  // a folder of this node, for the folder `tpudist-UID`; empty: none
  std::uint64_t most_bytes = std::uint64_t{32} << 30;  // limit for all files there in total
  bool keep = true;     // false: the last process that uses a file removes it
  int patience_s = 60;  // longest wait for a writing process without progress

  // `place`: "none", "auto" or a folder. "auto" is $SLURM_TMPDIR if set by Slurm, else /dev/shm
  // with files removed after their last use.
  static NodeCacheOptions of(std::string_view place, std::uint64_t most_bytes);
};

// The graphs of a data set in a file that all processes of the node map. The first process that
// needs the graphs writes the file; the others wait.
class NodeCache {
 public:
  // Null if the cache cannot be used: a warning says why, and the caller reads the shards. Throws
  // DataError if shards are damaged.
  static std::unique_ptr<NodeCache> open(const DatasetOptions& options,
                                         const std::vector<GraphEntry>& entries, bool with_configs,
                                         ThreadPool& pool);

  // The graphs, whose arrays stay in the file. They may outlive this object.
  std::vector<OpenGraph> graphs() const;
  std::uint64_t bytes() const { return file_.file()->bytes(); }

 private:
  NodeCache(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
            bool with_configs, ThreadPool& pool);

  const std::vector<GraphEntry> entries_;
  const bool with_configs_;
  NodeFile file_;
};

}  // namespace tpudist
