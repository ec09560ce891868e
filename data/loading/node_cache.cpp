#include "data/loading/node_cache.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/graph_records.hpp"
#include "data/loading/metis_segments.hpp"

namespace tpudist {
namespace {

// Everything that determines the file's bytes.
std::uint64_t key_of(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
                     bool with_configs) {
  Hasher hasher;
  hasher.update(std::string_view("tpudist node cache"));
  hasher.update(kGraphRecordsVersion);
  hasher.update(version());
  hasher.update(std::string_view(options.collection.name));
  hasher.update(options.duplicates);
  hasher.update(options.max_configs);
  hasher.update(options.least_entropy);
  GraphReduction opened = options.reduction;
  opened.max_nodes = 0;  // the file holds whole graphs; slates see parts
  hasher.update(std::string_view(to_text(opened)));
  if (const auto hash = metis_hash(opened)) hasher.update(*hash);
  hasher.update(static_cast<int>(with_configs));
  for (const GraphEntry& entry : entries) {
    hasher.update(std::string_view(entry.name));
    hasher.update(std::string_view(entry.split));
    hasher.update(std::string_view(entry.group));
    hasher.update(entry.shard_hash);
    for (const std::int64_t size : {entry.nodes, entry.edges, entry.configs, entry.config_nodes})
      hasher.update(size);
  }
  return hasher.digest();
}

NodeFile attached(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
                  bool with_configs, ThreadPool& pool) {
  const NodeCacheOptions& cache = options.node_cache;
  const auto folder = std::make_shared<const CacheFolder>(cache.place, cache.most_bytes);
  const std::uint64_t key = key_of(options, entries, with_configs);
  const std::string name = node_file_name(options.collection.name, options.splits(), key);
  if (!cache.keep) folder->remove_unused(name);
  const NodeFileSource source{
      .key = key,
      .bytes = [&] { return estimated_bytes(entries, with_configs, options.reduction); },
      .write =
          [&](CacheFileWriter& writer) {
            write_graphs(options, entries, with_configs, writer, key, pool);
          },
  };
  NodeFile file(folder, name, cache.keep);
  file.attach(source, std::max(cache.patience_s, 1), pool);
  return file;
}

}  // namespace

NodeCacheOptions NodeCacheOptions::of(std::string_view place, std::uint64_t most_bytes) {
  NodeCacheOptions options;
  options.most_bytes = most_bytes;
  if (place == "none") return options;
  if (place != "auto") {
    options.place = place;
  } else if (const char* folder = std::getenv("SLURM_TMPDIR"); folder && *folder) {
    options.place = folder;
  } else {
    options.place = "/dev/shm";
    options.keep = false;
  }
  return options;
}

NodeCache::NodeCache(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
                     bool with_configs, ThreadPool& pool)
    : entries_(entries),
      with_configs_(with_configs),
      file_(attached(options, entries, with_configs, pool)) {}

std::unique_ptr<NodeCache> NodeCache::open(const DatasetOptions& options,
                                           const std::vector<GraphEntry>& entries,
                                           bool with_configs, ThreadPool& pool) {
  if (options.node_cache.place.empty()) return nullptr;
  try {
    return std::unique_ptr<NodeCache>(new NodeCache(options, entries, with_configs, pool));
  } catch (const IoError& error) {
    // If a shard is unreadable, the caller gets the same error.
    warn_once(fmt::format("data.cache_dir: {}; this process keeps a copy of the data of its own",
                          error.what()));
    return nullptr;
  }
}

std::vector<OpenGraph> NodeCache::graphs() const {
  return read_graphs(file_.file(), entries_, with_configs_);
}

}  // namespace tpudist
