#include "data/convert/verifier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/mutex.hpp"
#include "core/process.hpp"
#include "core/thread_pool.hpp"
#include "data/convert/conversion_plan.hpp"
#include "data/convert/folder_checks.hpp"
#include "data/convert/graph_schema.hpp"
#include "data/convert/memory_budget.hpp"
#include "data/convert/source_npz.hpp"
#include "data/hdf5/row_groups.hpp"
#include "data/npz/feature_stream.hpp"
#include "data/shards/config_codec.hpp"
#include "data/shards/manifest.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {
namespace {

// Shared by the graphs that are verified at a time.
constexpr std::uint64_t kMemoryBytes = 160 << 20;

// Memory of verify_graph: the graph twice (shard and source), run times and groups, blocks of
// configurations.
std::uint64_t verification_bytes(const GraphSummary& graph) {
  return static_cast<std::uint64_t>(graph.nodes * graph.schema.node_features) * sizeof(float) * 5 /
             2 +
         static_cast<std::uint64_t>(graph.configs) * 64 + (12 << 20);
}

// Verifies one collection, shard by shard.
class CollectionVerifier {
 public:
  CollectionVerifier(const VerifyOptions& options, const Collection& collection, ThreadPool& pool,
                     ProgressSink& progress)
      : options_(options),
        pool_(pool),
        progress_(progress),
        folder_(std::filesystem::absolute(options.shard_root) / collection.folder()),
        collection_(collection) {}

  VerifiedCollection verify() {
    try {
      manifest_ = read_manifest(folder_ / kManifestName, collection_);
      collection_ = manifest_.collection;
    } catch (const DataError& e) {
      problem(e);
      return result();
    }
    for (const std::string& fault : manifest_faults(folder_ / kManifestName, manifest_)) {
      problem(DataError(fault));
    }
    check_surplus();
    std::int64_t graphs = 0;
    for (const auto& shard : manifest_.shards) graphs += std::ssize(shard.graphs);
    progress_.start("verify " + collection_.name, graphs, "graphs");
    pool_.parallel_for(std::ssize(manifest_.shards), [&](std::int64_t i) {
      const Manifest::Shard& shard = manifest_.shards[i];
      try {
        verify_shard(shard);
      } catch (const DataError& e) {
        problem(e);
      }
    });
    if (options_.npz_root) check_sources();
    progress_.finish();
    return result();
  }

 private:
  void verify_shard(const Manifest::Shard& shard) {
    check_shard_present(folder_, shard);
    const auto path = folder_ / shard.file;
    if (hash_file(path) != shard.hash) {
      throw DataError(path.string() +
                      ": its hash differs from the manifest's, so it is damaged; convert again");
    }
    const ShardSummary found = summarize_shard(path);
    require_equal(shard, found, collection_, path.string());
    std::optional<SourceNpz> source;  // of graph `i`, and of those before it with the same path
    std::string source_path;
    for (std::size_t i = 0; i < shard.graphs.size(); ++i) {
      const GraphSummary& graph = shard.graphs[i];
      try {
        if (options_.npz_root && source_path != graph.source.path) {
          source_path = graph.source.path;  // report its fault only once
          source.reset();
          source = open_source(path, source_path);
        }
        if (!options_.npz_root || source) {
          require_equal(graph, found.graphs[i], path.string() + ":" + found.graphs[i].group);
          verify_one(path, graph, shard.split, source);
        }
      } catch (const DataError& e) {
        problem(e);
      }
      progress_.advance(1, graph.name);
    }
  }

  void verify_one(const std::filesystem::path& shard, const GraphSummary& graph,
                  const std::string& split, const std::optional<SourceNpz>& source) {
    require_source_name(graph, split, shard);
    const int index = source ? source->find(graph.name) : 0;
    if (index < 0) {
      throw DataError(fmt::format("{}:{}: its source {} has no graph {}; convert again",
                                  shard.string(), graph.group, graph.source.path, graph.name));
    }
    const MemoryBudget::Share share(memory_, verification_bytes(graph));
    const auto verify = [&](const std::optional<std::filesystem::path>& npz) {
      verify_graph(shard, graph, collection_, split, npz);
    };
    source ? source->with_npz(index, verify) : verify(std::nullopt);
    const MutexLock lock(mutex_);
    ++result_.graphs;
    result_.configs += graph.configs;
  }

  // A graph is named like its file, which lies in the folder of its collection and split.
  void require_source_name(const GraphSummary& graph, const std::string& split,
                           const std::filesystem::path& shard) const {
    const std::filesystem::path source = graph.source.path;
    const bool in_place = source.parent_path() == collection_.folder() / split;
    const bool is_kernel = collection_.is_tile() && !is_npz(source);
    if (in_place && (is_kernel || source.stem() == graph.name)) return;
    throw DataError(fmt::format("{}:{}: the name {} is not that of its source {}; convert again",
                                shard.string(), graph.group, graph.name, graph.source.path));
  }

  std::optional<SourceNpz> open_source(const std::filesystem::path& shard,
                                       const std::string& name) const {
    const std::filesystem::path file = *options_.npz_root / name;
    if (!std::filesystem::exists(file))
      throw DataError(fmt::format("{}: the source {} is missing", shard.string(), file.string()));
    return std::optional<SourceNpz>(std::in_place, file, collection_);
  }

  // Reports unlisted shards, which nobody would read. A killed conversion leaves some.
  void check_surplus() {
    for (const std::string_view split : kSplits) {
      std::error_code none;
      for (const auto& entry : std::filesystem::directory_iterator(folder_ / split, none)) {
        const std::string name = entry.path().filename().string();
        if (!name.ends_with(".h5") || lists(manifest_, fmt::format("{}/{}", split, name))) continue;
        const std::string what = entry.path().string() + ": is not in the manifest; ";
        if (is_shard_name(name))
          spdlog::info("{}the next `tpudist convert` uses or removes it", what);
        else
          problem(DataError(what + "remove it"));
      }
    }
  }

  // Reports NPZ files that the manifest lists neither as a graph nor as skipped.
  void check_sources() {
    std::set<std::string> known = sources_of(manifest_);
    for (const Manifest::Skipped& file : manifest_.skipped) known.insert(file.source);
    const auto root = std::filesystem::absolute(*options_.npz_root);
    const FeatureSchema sources = with_source_schema(root, collection_).schema;
    if (sources != collection_.schema) {
      problem(DataError(fmt::format("{}: has {}, but its sources have {}; convert again",
                                    (folder_ / kManifestName).string(), to_text(collection_.schema),
                                    to_text(sources))));
    }
    std::vector<PlannedShard> plan;
    try {
      plan = plan_shards(root, collection_);
    } catch (const Error& error) {
      problem(DataError(error.what()));
    }
    for (const PlannedShard& planned : plan) {
      for (const auto& source : planned.sources) {
        if (known.contains(source.lexically_relative(root).generic_string())) continue;
        problem(DataError(source.string() + ": has not been converted"));
      }
    }
  }

  void problem(const DataError& error) {
    spdlog::error("{}", error.what());
    const MutexLock lock(mutex_);
    result_.problems.emplace_back(error.what());
  }

  VerifiedCollection result() {
    const MutexLock lock(mutex_);
    std::ranges::sort(result_.problems);
    result_.collection = collection_;
    return std::move(result_);
  }

  const VerifyOptions& options_;
  ThreadPool& pool_;
  ProgressSink& progress_;
  const std::filesystem::path folder_;
  MemoryBudget memory_{kMemoryBytes};
  Manifest manifest_;
  Collection collection_;  // the manifest's, once that is read
  Mutex mutex_;
  VerifiedCollection result_ TPUDIST_GUARDED_BY(mutex_);
};

// Compares arrays of one type bit by bit.
template <typename Stored, typename Source>
void compare(std::string_view where, std::string_view array, const Stored& stored,
             const Source& source) {
  constexpr std::size_t bytes = sizeof(stored[0]);
  static_assert(bytes == sizeof(source[0]));
  if (stored.size() == source.size() &&
      (stored.empty() || std::memcmp(stored.data(), source.data(), stored.size() * bytes) == 0)) {
    return;
  }
  std::size_t i = 0;
  const std::size_t both = std::min(stored.size(), source.size());
  while (i < both && std::memcmp(&stored[i], &source[i], bytes) == 0) ++i;
  throw DataError(fmt::format("{}/{}: differs from the NPZ file at element {}", where, array, i));
}

template <typename Code>
void check_codes(const ConfigStates& states, const Array<Code>& codes, std::int64_t first_row,
                 std::string_view where) {
  const std::size_t nc = states.offsets.size() - 1;
  for (std::size_t i = 0, j = 0; i < codes.size(); ++i, j = j + 1 == nc ? 0 : j + 1) {
    const std::int32_t count = states.offsets[j + 1] - states.offsets[j];
    if (codes[i] >= count) {
      throw DataError(fmt::format("{}/config_codes[{}, {}] = {}, but the node has {} states", where,
                                  first_row + static_cast<std::int64_t>(i / nc), j, codes[i],
                                  count));
    }
  }
}

// One graph of a shard under examination.
class GraphVerifier {
 public:
  GraphVerifier(const GraphEntry& entry, const Collection& collection)
      : entry_(entry),
        collection_(collection),
        reader_(entry),
        where_(entry.shard.string() + ":" + entry.group) {}

  void check() {
    graph_ = reader_.read_graph();
    times_ = reader_.read_run_times();
    if (reader_.coded()) {
      states_ = reader_.read_states();
      for (std::int64_t row = 0; row < entry_.configs; row += reader_.chunk_rows()) {
        const std::int64_t count = std::min(reader_.chunk_rows(), entry_.configs - row);
        std::visit([&](const auto& codes) { check_codes(states_, codes, row, where_); },
                   reader_.read_codes(row, count));
      }
    }
    check_groups();
  }

  void compare_with(const std::filesystem::path& path) {
    const NpzReader npz(path);
    const GraphSizes sizes = read_graph_sizes(npz, collection_);
    {
      const Graph source = read_graph(npz, collection_, sizes);
      compare(where_, "node_feat", graph_.node_features, source.node_features);
      compare(where_, "node_opcode", graph_.opcodes, source.opcodes);
      compare(where_, "edge_index", graph_.edge_index, source.edge_index);
      compare(where_, "config_nodes", graph_.config_nodes, source.config_nodes);
      compare(where_, "node_splits", graph_.node_splits, source.node_splits);
    }
    const RunTimes source = read_run_times(npz, collection_, entry_.split, sizes);
    compare(where_, "runtime", times_.runtime, source.runtime);
    compare(where_, "runtime_normalizer", times_.normalizer, source.normalizer);
    if (sizes.configs != entry_.configs) throw DataError(where_ + ": configs differs from the NPZ");
    FeatureStream stream(open_config_features(npz, collection_));
    while (const auto* block = stream.next()) {
      compare(where_, fmt::format("configurations from {}", block->first_row),
              features(block->first_row, block->rows), block->values);
    }
  }

 private:
  std::vector<float> features(std::int64_t first, std::int64_t count) const {
    if (!reader_.coded()) return reader_.read_config_features(first, count);
    std::vector<float> values(
        static_cast<std::size_t>(count * entry_.config_nodes * entry_.schema.config_features));
    std::visit([&]<typename Code>(
                   const Array<Code>& codes) { decode_configs<Code>(states_, codes, values); },
               reader_.read_codes(first, count));
    return values;
  }

  void check_groups() const {
    const Hdf5Id file = open_shard(entry_.shard);
    const Hdf5Id group = open_group(file, entry_.group, entry_.shard.string());
    const Hdf5Dataset rows =
        Hdf5Dataset::open(group, reader_.coded() ? "config_codes" : "config_feat", where_);
    std::vector<std::uint64_t> hashes;
    std::vector<std::byte> chunk;
    for (std::int64_t i = 0; i < rows.chunks(); ++i) {
      chunk.resize(static_cast<std::size_t>(rows.rows_of_chunk(i)) * rows.row_bytes());
      rows.read_chunk(i, chunk);
      require_finite(rows, i * rows.chunk_rows(), chunk);
      for (std::size_t at = 0; at < chunk.size(); at += rows.row_bytes()) {
        hashes.push_back(hash64(std::span(chunk).subspan(at, rows.row_bytes())));
      }
    }
    if (group_equal_rows(rows, hashes) != times_.group) {
      throw DataError(where_ + "/config_group: does not say which configurations are equal");
    }
  }

  const GraphEntry& entry_;
  const Collection& collection_;
  const GraphReader reader_;
  const std::string where_;
  Graph graph_;
  RunTimes times_;
  ConfigStates states_;
};

}  // namespace

std::vector<VerifiedCollection> verify(const VerifyOptions& options, ProgressSink& progress) {
  ThreadPool pool(options.jobs > 0 ? options.jobs : usable_cores());
  std::vector<VerifiedCollection> results;
  if (options.npz_root) warn_of_unread(*options.npz_root, {});
  // Includes collections without a manifest, which is a problem to report.
  for (const Collection& collection :
       find_collections(options.shard_root, [](const Collection&) { return true; })) {
    results.push_back(CollectionVerifier(options, collection, pool, progress).verify());
  }
  if (results.empty()) require_any_shards(options.shard_root);
  return results;
}

void verify_graph(const std::filesystem::path& shard, const GraphSummary& graph,
                  const Collection& collection, std::string_view split,
                  const std::optional<std::filesystem::path>& npz) {
  const GraphEntry entry{graph, std::string(split), shard};
  GraphVerifier verifier(entry, collection);
  verifier.check();
  if (npz) verifier.compare_with(*npz);
}

}  // namespace tpudist
