#include "train/units/prepared_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "core/warn_once.hpp"
#include "train/units/prepared_records.hpp"

namespace tpudist {
namespace {

// The properties that refinement depends on.
void add_shape(const PlanShape& shape, Hasher& hasher) {
  hasher.update(static_cast<int>(shape.early_join));
  for (const LayerShape& layer : shape.layers) {
    hasher.update(layer.edge_kinds.size());
    for (const EdgeKind kind : layer.edge_kinds) hasher.update(kind);
    hasher.update(static_cast<int>(layer.joins_states));
  }
}

// Hash of everything that determines the bytes of a file of these graphs. The shards' content is
// represented by their hashes, which were checked when the data set was read.
std::uint64_t key_of(const Dataset& dataset, const Network& network, bool refined, int first,
                     int count) {
  Hasher hasher;
  hasher.update(std::string_view("tpudist prepared graphs"));
  hasher.update(kPreparedRecordsVersion);
  hasher.update(std::string_view(version()));
  hasher.update(network.graph_key());
  hasher.update(network.config_features());
  hasher.update(static_cast<int>(refined));
  if (refined) add_shape(network.plan_shape(), hasher);
  hasher.update(std::string_view(to_text(dataset.options().reduction)));
  for (int g = first; g < first + count; ++g) {
    const GraphEntry& entry = dataset.entry(g);
    hasher.update(std::string_view(entry.name));
    hasher.update(std::string_view(entry.group));
    hasher.update(entry.shard_hash);
  }
  return hasher.digest();
}

std::vector<PreparedArrays> prepare(const Dataset& dataset, const Network& network, bool refined,
                                    int first, int count, ThreadPool& pool) {
  std::vector<PreparedArrays> graphs(static_cast<std::size_t>(count));
  pool.parallel_for(count, [&](std::int64_t i) {
    const int graph = first + static_cast<int>(i);
    PreparedArrays& made = graphs[static_cast<std::size_t>(i)];
    made = prepare_input(dataset, network, graph);
    const Graph& source = dataset.graph(graph);
    if (refined)
      made.refined =
          refine_graph(source, source.edge_index, made.node_class, network.plan_shape()).arrays();
  });
  return graphs;
}

}  // namespace

std::unique_ptr<const PreparedFiles> PreparedFiles::open(const Dataset& dataset,
                                                         const Network& network, bool refined,
                                                         ThreadPool& pool,
                                                         std::int64_t part_nodes) {
  if (dataset.shared_bytes() == 0) return nullptr;
  try {
    std::unique_ptr<PreparedFiles> files(new PreparedFiles(dataset, network, refined, part_nodes));
    files->attach(dataset, network, pool);
    return files;
  } catch (const IoError& error) {
    warn_once(fmt::format("data.cache_dir: {}; this process keeps prepared graphs of its own",
                          error.what()));
  } catch (const DataError& error) {
    spdlog::debug("graphs are not prepared in a file: {}", error.what());
  }
  return nullptr;
}

PreparedFiles::PreparedFiles(const Dataset& dataset, const Network& network, bool refined,
                             std::int64_t part_nodes)
    : shape_(network.plan_shape()), refined_(refined) {
  const DatasetOptions& options = dataset.options();
  const auto folder =
      std::make_shared<const CacheFolder>(options.node_cache.place, options.node_cache.most_bytes);
  for (int first = 0; first < dataset.size();) {
    int count = 0;
    for (std::int64_t nodes = 0; first + count < dataset.size() && nodes < part_nodes; ++count)
      nodes += dataset.graph(first + count).nodes;
    const std::string what = fmt::format("{}.prepared", options.splits());
    const std::uint64_t key = key_of(dataset, network, refined, first, count);
    const std::string name = node_file_name(options.collection.name, what, key);
    parts_.push_back({first, count, key, NodeFile(folder, name, options.node_cache.keep)});
    first += count;
  }
}

// First those that no other process makes, so that processes that begin together share the work.
void PreparedFiles::attach(const Dataset& dataset, const Network& network, ThreadPool& pool) {
  std::vector<Part*> others;
  for (Part& part : parts_) {
    if (!attach(part, dataset, network, 0, pool)) others.push_back(&part);
  }
  for (Part* part : others)
    attach(*part, dataset, network, std::max(dataset.options().node_cache.patience_s, 1), pool);
}

bool PreparedFiles::attach(Part& part, const Dataset& dataset, const Network& network,
                           int patience_s, ThreadPool& pool) const {
  std::vector<PreparedArrays> graphs;
  const NodeFileSource source{
      .key = part.key,
      .bytes =
          [&] {
            graphs = prepare(dataset, network, refined_, part.first, part.count, pool);
            return prepared_bytes(graphs);
          },
      .write =
          [&](CacheFileWriter& writer) {
            write_prepared(graphs, writer, part.key, pool);
            graphs.clear();
          },
  };
  return part.file.attach(source, patience_s, pool);
}

PreparedArrays PreparedFiles::read(int graph) const {
  const auto part = std::prev(std::ranges::upper_bound(parts_, graph, {}, &Part::first));
  return read_prepared(*part->file.file(), static_cast<std::size_t>(graph - part->first),
                       static_cast<std::size_t>(part->count), refined_ ? &shape_ : nullptr);
}

std::uint64_t PreparedFiles::bytes() const {
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.file.file()->bytes();
  return bytes;
}

}  // namespace tpudist
