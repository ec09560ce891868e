#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"
#include "core/thread_pool.hpp"
#include "data/loading/cache_file.hpp"
#include "data/loading/graph_reduction.hpp"
#include "data/loading/open_graph.hpp"

namespace tpudist {

// A cache file that the processes of a node share. The first process that needs the file makes it;
// the others wait or do other work meanwhile. Holds a lock, so that no other process removes the
// file. Not thread-safe.
class NodeFile {
 public:
  // How to make a missing file.
  struct Source {
    std::uint64_t key = 0;                        // hash of everything that determines its bytes
    std::function<std::uint64_t()> bytes;         // estimate of its size; called first
    std::function<void(CacheFileWriter&)> write;  // the arrays, then CacheFileWriter::finish
  };

  // `keep` false: the last process that uses the file removes it.
  NodeFile(std::shared_ptr<const CacheFolder> folder, std::string name, bool keep);
  ~NodeFile();
  NodeFile(NodeFile&&) noexcept = default;
  NodeFile& operator=(NodeFile&&) = delete;

  // Opens the file, or makes it if it is missing, damaged or of another key. `patience_s`: how long
  // to wait for another process that is making the file without progress; 0: do not wait. Returns
  // false if another process is making the file and patience_s is 0. Throws IoError if the file can
  // be neither opened nor made, and the exceptions of the source.
  bool attach(const Source& source, int patience_s, ThreadPool& pool);

  // Null until attach() has returned true. May outlive this object.
  const std::shared_ptr<const CacheFile>& file() const { return file_; }

 private:
  bool take_existing(std::uint64_t key, ThreadPool& pool);
  void write(const Source& source, CacheFolder::NewFile& fresh) const;
  void wait_for_writer(int patience_s) const;

  std::shared_ptr<const CacheFolder> folder_;
  std::string name_;
  bool keep_;
  Descriptor lock_;  // shared lock on the file while it is used
  std::shared_ptr<const CacheFile> file_;
};

// A file name from the arguments; colons become hyphens.
std::string node_file_name(const std::string& collection, const std::string& what,
                           std::uint64_t key);

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

// The graphs of a data set in a file that all processes of the node map; read_graphs reads it. The
// first process that needs the graphs writes the file; the others wait. Nothing if the cache cannot
// be used: a warning says why, and the caller reads the shards. Throws DataError if shards are
// damaged.
std::optional<NodeFile> open_node_cache(const DatasetOptions& options,
                                        const std::vector<GraphEntry>& entries, bool with_configs,
                                        ThreadPool& pool);

// Graphs of a data set in a cache file: the whole content of each OpenGraph by the options
// (duplicates merged, graphs reduced), with or without the configurations.

// Increase this number whenever the same key would stand for different bytes.
inline constexpr std::uint64_t kGraphRecordsVersion = 3;

// The estimated size of the file, from the manifest: for whole graphs, with the most config edges
// of a graph without cycles.
std::uint64_t estimated_bytes(const std::vector<GraphEntry>& entries, bool with_configs,
                              const GraphReduction& reduction);

// Reads the graphs from their shards and writes them one by one, so that the process never holds
// them all. Finishes the file with `key`. Throws IoError if the file cannot be written, and the
// exceptions of reading shards.
void write_graphs(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
                  bool with_configs, CacheFileWriter& writer, std::uint64_t key, ThreadPool& pool);

// The graphs, whose arrays stay in the file. Without configurations, opens the shards to read them.
// Throws DataError if the file has other graphs, and the exceptions of opening shards.
std::vector<OpenGraph> read_graphs(const std::shared_ptr<const CacheFile>& file,
                                   const std::vector<GraphEntry>& entries, bool with_configs);

}  // namespace tpudist
