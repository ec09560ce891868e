#include "data/loading/node_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <variant>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/version.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/metis_segments.hpp"

namespace tpudist {
namespace {

constexpr int kMostWrites = 3;  // of a file that disappears repeatedly

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
  const NodeFile::Source source{
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

constexpr std::size_t kArrays = 14;

// One graph in the directory of a cache file.
struct GraphRecord {
  std::int64_t nodes = 0, edges = 0;  // after the reduction
  std::int64_t width = 0;
  std::int64_t coded = 0;
  std::int64_t config_type = 0;                  // ElementType of codes or features
  std::array<CacheFile::Place, kArrays> arrays;  // in the order of for_each_array
  CacheFile::Place configs;
};
static_assert(std::is_trivially_copyable_v<GraphRecord>);

template <typename T>
std::span<const std::byte> bytes_of(const Array<T>& values) {
  return std::as_bytes(std::span(values));
}

std::span<const std::byte> bytes_of(const ConfigChunk& chunk, bool coded) {
  if (!coded) return bytes_of(chunk.features);
  return std::visit([](const auto& codes) { return bytes_of(codes); }, chunk.codes);
}

GraphRecord write_arrays(const OpenGraph& g, CacheFileWriter& writer) {
  GraphRecord record;
  record.nodes = g.graph.nodes;
  record.edges = g.graph.edges;
  record.width = g.width;
  record.coded = g.coded;
  std::size_t i = 0;
  for_each_array(g, [&](const auto& values) {
    CacheFile::Place& place = record.arrays[i++];
    place = {writer.reserve(values.bytes()), values.size()};
    writer.write(place.offset, bytes_of(values));
  });
  return record;
}

// Records type and number of the configurations' elements in the file.
void describe_configs(const OpenGraph& g, GraphRecord& record) {
  const ElementType type = g.config_type();
  record.config_type = static_cast<std::int64_t>(type);
  record.configs.count = g.config_bytes() / element_bytes(type);
}

ConfigChunk configs_in(const CacheFile& file, const GraphRecord& record) {
  ConfigChunk all;
  const auto type = static_cast<ElementType>(record.config_type);
  if (!record.coded) {
    all.type = type;
    CacheFile::Place bytes = record.configs;
    bytes.count *= element_bytes(type);
    all.features = file.array<std::byte>(bytes);
  } else if (type == ElementType::u16) {
    all.codes = file.array<std::uint16_t>(record.configs);
  } else {
    all.codes = file.array<std::uint8_t>(record.configs);
  }
  return all;
}

}  // namespace

NodeFile::NodeFile(std::shared_ptr<const CacheFolder> folder, std::string name, bool keep)
    : folder_(std::move(folder)), name_(std::move(name)), keep_(keep) {}

NodeFile::~NodeFile() {
  if (keep_ || !lock_) return;
  try {
    folder_->remove_if_last(name_, lock_);
  } catch (const IoError& error) {
    spdlog::debug("{}", error.what());
  }
}

bool NodeFile::attach(const NodeFile::Source& source, int patience_s, ThreadPool& pool) {
  for (int writes = 0; writes < kMostWrites;) {
    if (take_existing(source.key, pool)) return true;
    std::optional<CacheFolder::NewFile> fresh = folder_->begin(name_);
    if (!fresh) {
      if (patience_s == 0) return false;
      wait_for_writer(patience_s);
      continue;
    }
    if (take_existing(source.key, pool)) return true;  // another process has just written it
    write(source, *fresh);
    ++writes;
  }
  throw IoError(fmt::format("{} was written {} times and is gone or damaged each time",
                            folder_->path_of(name_).string(), kMostWrites));
}

bool NodeFile::take_existing(std::uint64_t key, ThreadPool& pool) {
  lock_ = folder_->open(name_);
  if (!lock_) return false;
  try {
    file_ = CacheFile::open(lock_, folder_->path_of(name_), key, pool);
  } catch (const DataError& error) {
    spdlog::warn("{}; it is made anew", error.what());
    lock_ = {};
    return false;
  }
  spdlog::debug("shares {} ({})", folder_->path_of(name_).string(), format_bytes(file_->bytes()));
  return true;
}

void NodeFile::write(const NodeFile::Source& source, CacheFolder::NewFile& fresh) const {
  const auto begin = std::chrono::steady_clock::now();
  folder_->make_room(source.bytes());
  CacheFileWriter writer(fresh.descriptor(), fresh.path());
  source.write(writer);
  fresh.publish();
  spdlog::debug("wrote {} in {:.1f} s", folder_->path_of(name_).string(), seconds_since(begin));
}

// A killed writer releases its file at once, so only a stopped writer can keep others waiting.
void NodeFile::wait_for_writer(int patience_s) const {
  const std::uint64_t before = folder_->progress_of(name_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(patience_s);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (folder_->progress_of(name_) != before) return;
    if (folder_->begin(name_)) return;
  }
  throw IoError(fmt::format("another process has begun to write {} and has not got on for {} s",
                            folder_->path_of(name_).string(), patience_s));
}

std::string node_file_name(const std::string& collection, const std::string& what,
                           std::uint64_t key) {
  std::string name = fmt::format("{}.{}.{}.cache", collection, what, to_hex(key));
  std::ranges::replace(name, ':', '-');
  return name;
}

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

std::optional<NodeFile> open_node_cache(const DatasetOptions& options,
                                        const std::vector<GraphEntry>& entries, bool with_configs,
                                        ThreadPool& pool) {
  if (options.node_cache.place.empty()) return std::nullopt;
  try {
    return attached(options, entries, with_configs, pool);
  } catch (const IoError& error) {
    // If a shard is unreadable, the caller gets the same error.
    warn_once(fmt::format("data.cache_dir: {}; this process keeps a copy of the data of its own",
                          error.what()));
    return std::nullopt;
  }
}

std::uint64_t estimated_bytes(const std::vector<GraphEntry>& entries, bool with_configs,
                              const GraphReduction& reduction) {
  std::uint64_t bytes = 1 << 16;
  for (const GraphEntry& entry : entries) {
    const auto nodes = static_cast<std::uint64_t>(entry.nodes);
    const auto configs = static_cast<std::uint64_t>(entry.configs);
    bytes += nodes * (static_cast<std::uint64_t>(entry.schema.node_features) * 4 + 5) +
             static_cast<std::uint64_t>(entry.edges) * 8;
    bytes += configs * (8 + 4 + 16) + sizeof(GraphRecord);  // run times, groups, merged rows
    if (with_configs) bytes += entry.config_bytes();
    if (reduction.config_edges) {
      const std::int64_t ends = std::min(entry.config_nodes, kMostConfigEdges);
      bytes += static_cast<std::uint64_t>(8 * std::min(ends * (ends - 1) / 2, kMostConfigEdges));
    }
    if (reduction.segments != SegmentCut::none) bytes += 4 * nodes;
  }
  return bytes;
}

void write_graphs(const DatasetOptions& options, const std::vector<GraphEntry>& entries,
                  bool with_configs, CacheFileWriter& writer, std::uint64_t key, ThreadPool& pool) {
  check_shard_hashes(entries, pool);
  std::vector<GraphRecord> records(entries.size());
  std::vector<OpenGraph> graphs(entries.size());
  pool.parallel_for(std::ssize(entries), [&](std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    OpenGraph g = open_graph(entries[i], options);
    records[i] = write_arrays(g, writer);
    if (!with_configs) return;
    describe_configs(g, records[i]);
    records[i].configs.offset = writer.reserve(g.config_bytes());
    // Keeps what reading chunks needs.
    g.graph = {};
    g.times = {};
    g.merged = {};
    graphs[i] = std::move(g);
  });

  std::vector<std::pair<std::size_t, std::int64_t>> chunks;  // (graph, number)
  for (std::size_t i = 0; with_configs && i < graphs.size(); ++i)
    for (std::int64_t c = 0; c < graphs[i].chunk_count(); ++c) chunks.emplace_back(i, c);
  pool.parallel_for(std::ssize(chunks), [&](std::int64_t at) {
    const auto [i, number] = chunks[at];
    const OpenGraph& g = graphs[i];
    const ConfigChunk chunk = g.read_chunk(number);
    const std::uint64_t first = static_cast<std::uint64_t>(number * g.chunk_rows * g.width) *
                                element_bytes(static_cast<ElementType>(records[i].config_type));
    writer.write(records[i].configs.offset + first, bytes_of(chunk, g.coded));
  });
  writer.finish(key, std::as_bytes(std::span(records)), pool);
}

std::vector<OpenGraph> read_graphs(const std::shared_ptr<const CacheFile>& file,
                                   const std::vector<GraphEntry>& entries, bool with_configs) {
  const std::span<const std::byte> directory = file->directory();
  if (directory.size() != entries.size() * sizeof(GraphRecord))
    throw DataError("the directory of a cache file is of other graphs");
  std::vector<OpenGraph> graphs(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    GraphRecord record;
    std::memcpy(&record, directory.data() + i * sizeof record, sizeof record);
    OpenGraph& g = graphs[i];
    g.entry = entries[i];
    g.graph.name = g.entry.name;
    g.graph.nodes = record.nodes;
    g.graph.edges = record.edges;
    g.width = record.width;
    g.coded = record.coded != 0;
    std::size_t a = 0;
    for_each_array(
        g, [&]<typename T>(Array<T>& values) { values = file->array<T>(record.arrays[a++]); });
    if (with_configs) {
      g.chunk_rows = g.entry.configs;
      g.chunks.push_back(configs_in(*file, record));
    } else {
      g.open_reader();
    }
  }
  return graphs;
}

}  // namespace tpudist
