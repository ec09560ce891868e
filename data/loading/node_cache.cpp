#include "data/loading/node_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/version.hpp"
#include "core/warn_once.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/graph_records.hpp"

namespace tpudist {
namespace {

constexpr int kMostWrites = 3;  // of one file, where it vanishes again and again

// Everything that decides the file's bytes.
std::uint64_t key_of(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
                     bool with_configs) {
  Hasher hasher;
  hasher.update(std::string_view("tpudist node cache"));
  hasher.update(kGraphRecordsVersion);
  hasher.update(version());
  hasher.update(std::string_view(options.collection.name));
  hasher.update(options.duplicates);
  hasher.update(std::string_view(to_text(options.reduction)));
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

std::string name_of(const DatasetOptions& options, std::uint64_t key) {
  std::string name =
      fmt::format("{}.{}.{}.cache", options.collection.name, options.splits(), to_hex(key));
  std::ranges::replace(name, ':', '-');
  return name;
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
                     bool with_configs)
    : entries_(entries),
      with_configs_(with_configs),
      keep_(options.node_cache.keep),
      key_(key_of(options, entries, with_configs)),
      name_(name_of(options, key_)),
      folder_(options.node_cache.place, options.node_cache.most_bytes) {}

NodeCache::~NodeCache() {
  if (keep_ || !lock_) return;
  try {
    folder_.remove_if_last(name_, lock_);
  } catch (const IoError& error) {
    spdlog::debug("{}", error.what());
  }
}

std::unique_ptr<NodeCache> NodeCache::open(const DatasetOptions& options,
                                           const std::vector<GraphEntry>& entries,
                                           bool with_configs, ThreadPool& pool) {
  if (options.node_cache.place.empty()) return nullptr;
  try {
    std::unique_ptr<NodeCache> cache(new NodeCache(options, entries, with_configs));
    cache->attach(options, pool);
    return cache;
  } catch (const IoError& error) {
    // Where it was a shard that could not be read, the caller meets the same error.
    warn_once(fmt::format("data.cache_dir: {}; this process keeps a copy of the data of its own",
                          error.what()));
    return nullptr;
  }
}

std::vector<OpenGraph> NodeCache::graphs() const {
  return read_graphs(file_, entries_, with_configs_);
}

void NodeCache::attach(const DatasetOptions& options, ThreadPool& pool) {
  if (!keep_) folder_.remove_unused(name_);
  for (int writes = 0; writes < kMostWrites;) {
    if (take_existing(pool)) return;
    std::optional<NewCacheFile> fresh = folder_.begin(name_);
    if (!fresh) {
      wait_for_writer(options.node_cache.patience_s);
      continue;
    }
    if (take_existing(pool)) return;  // whoever wrote it was done just before
    write(options, *fresh, pool);
    ++writes;
  }
  throw IoError(fmt::format("{} was written {} times and is gone or damaged each time",
                            folder_.path_of(name_).string(), kMostWrites));
}

bool NodeCache::take_existing(ThreadPool& pool) {
  lock_ = folder_.open(name_);
  if (!lock_) return false;
  try {
    file_ = CacheFile::open(lock_, folder_.path_of(name_), key_, pool);
  } catch (const DataError& error) {
    spdlog::warn("{}; it is made anew", error.what());
    lock_ = {};
    return false;
  }
  spdlog::debug("shares {} ({})", folder_.path_of(name_).string(), format_bytes(file_->bytes()));
  return true;
}

void NodeCache::write(const DatasetOptions& options, NewCacheFile& fresh, ThreadPool& pool) const {
  const auto begin = std::chrono::steady_clock::now();
  folder_.make_room(estimated_bytes(entries_, with_configs_));
  CacheFileWriter writer(fresh.descriptor(), fresh.path());
  write_graphs(options, entries_, with_configs_, writer, key_, pool);
  fresh.publish();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  spdlog::debug("wrote {} in {:.1f} s", folder_.path_of(name_).string(), seconds.count());
}

// A writer that is killed lets go of its file at once, so only one that is stopped keeps others
// waiting for nothing.
void NodeCache::wait_for_writer(int patience_s) const {
  const std::uint64_t before = folder_.progress_of(name_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(patience_s);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (folder_.progress_of(name_) != before) return;
    if (folder_.begin(name_)) return;
  }
  throw IoError(fmt::format("another process has begun to write {} and has not got on for {} s",
                            folder_.path_of(name_).string(), patience_s));
}

}  // namespace tpudist
