#include "train/units/prepared_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "data/loading/cache_file.hpp"
#include "models/plans/row_keys.hpp"

namespace tpudist {
namespace {

// Increase this number whenever the same key would stand for different bytes.
constexpr std::uint64_t kPreparedRecordsVersion = 4;

// Prepared graphs in a cache file: the arrays of one graph after another, and in the directory a
// record of equal length for each graph.

constexpr std::uint64_t kAlignment = 64;  // of arrays, as required by cache files

std::size_t places_of(const PreparedArrays& graph) {
  std::size_t places = 0;
  PreparedArrays::for_each(graph, [&](const auto&) { ++places; });
  return places;
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The arrays of a graph, aligned as in the file.
std::vector<std::byte> packed(const PreparedArrays& graph, std::span<CacheFile::Place> places) {
  std::vector<std::byte> bytes;
  std::size_t at = 0;
  PreparedArrays::for_each(graph, [&](const auto& values) {
    places[at++] = {bytes.size(), values.size()};
    const auto part = std::as_bytes(std::span(values));
    bytes.insert(bytes.end(), part.begin(), part.end());
    bytes.resize(aligned(bytes.size()));
  });
  return bytes;
}

// Estimated size of a file with these graphs.
std::uint64_t prepared_bytes(std::span<const PreparedArrays> graphs) {
  std::uint64_t bytes = 1 << 12;
  for (const PreparedArrays& graph : graphs)
    bytes += graph.bytes() + places_of(graph) * (sizeof(CacheFile::Place) + kAlignment);
  return bytes;
}

// Writes all graphs and finishes the file. All or none must have refined arrays. Throws IoError.
void write_prepared(std::span<const PreparedArrays> graphs, CacheFileWriter& writer,
                    std::uint64_t key, ThreadPool& pool) {
  const std::size_t width = graphs.empty() ? 0 : places_of(graphs.front());
  std::vector<CacheFile::Place> directory(graphs.size() * width);
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const auto places = std::span(directory).subspan(g * width, width);
    const std::vector<std::byte> bytes = packed(graphs[g], places);
    const std::uint64_t begin = writer.reserve(bytes.size());
    for (CacheFile::Place& place : places) place.offset += begin;
    writer.write(begin, bytes);
  }
  writer.finish(key, std::as_bytes(std::span(directory)), pool);
}

// One graph out of the `count` in a file; the arrays stay in the file and keep it mapped.
// `refined`: the shape of the refined arrays, null if there are none. Throws DataError if the
// directory belongs to other graphs.
PreparedArrays read_prepared(const CacheFile& file, std::size_t graph, std::size_t count,
                             const PlanShape* refined) {
  PreparedArrays arrays;
  if (refined) arrays.refined = RefinedArrays::empty(*refined);
  const std::size_t width = places_of(arrays);
  const std::span<const std::byte> directory = file.directory();
  if (directory.size() != count * width * sizeof(CacheFile::Place))
    throw DataError("the directory of a cache file is of other graphs");
  const std::byte* at = directory.data() + graph * width * sizeof(CacheFile::Place);
  PreparedArrays::for_each(arrays, [&]<typename T>(Array<T>& values) {
    CacheFile::Place place;
    std::memcpy(&place, at, sizeof place);
    at += sizeof place;
    values = file.array<T>(place);
  });
  return arrays;
}

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
  hasher.update(network.schema().node_features);
  hasher.update(network.schema().config_features);
  hasher.update(static_cast<int>(refined));
  if (refined) add_shape(network.plan_shape(), hasher);
  hasher.update(std::string_view(to_text(dataset.options().reduction)));
  for (int g = first; g < first + count; ++g) {
    const GraphEntry& entry = dataset.entry(g);
    hasher.update(std::string_view(entry.name));
    hasher.update(std::string_view(entry.group));
    hasher.update(entry.shard_hash);
    hasher.update(std::span<const std::int32_t>(dataset.graph(g).segment));
  }
  return hasher.digest();
}

std::vector<PreparedArrays> prepare(const Dataset& dataset, const Network& network, bool refined,
                                    int first, int count, ThreadPool& pool) {
  std::vector<PreparedArrays> graphs(count);
  pool.parallel_for(count, [&](std::int64_t i) {
    const int graph = first + static_cast<int>(i);
    PreparedArrays& made = graphs[i];
    made = prepare_input(dataset, network, graph);
    const Graph& source = dataset.graph(graph);
    if (refined && dataset.options().reduction.draws(source.nodes))  // never seen whole
      made.refined = RefinedArrays::empty(network.plan_shape());
    else if (refined)
      made.refined = refine_graph(source, made.node_class, network.plan_shape()).arrays();
  });
  return graphs;
}

}  // namespace

std::uint64_t PreparedArrays::bytes() const {
  std::uint64_t bytes = 0;
  for_each(*this, [&](const auto& values) { bytes += values.bytes(); });
  return bytes;
}

void require_nodes(const Dataset& dataset, const Network& network, int graph) {
  const Graph& source = dataset.graph(graph);
  const std::int64_t most = network.config().most_nodes(),
                     nodes = dataset.options().reduction.seen(source.nodes);
  if (nodes > most) {
    throw DataError(fmt::format(
        "graph {} has {} nodes, and a self_attention of the model takes at most {}: keep fewer by "
        "data.reduce, leave the graph out by data.exclude, or raise max_nodes of the layer",
        source.name, nodes, most));
  }
}

PreparedArrays prepare_input(const Dataset& dataset, const Network& network, int graph) {
  require_nodes(dataset, network, graph);
  const Graph& source = dataset.graph(graph);
  PreparedArrays prepared;
  const Array<float> rows = [&] {
    try {
      return network.input_rows(source.node_features, source.edge_index);
    } catch (const DataError& error) {  // lacks the graph's name
      throw DataError(fmt::format("graph {}: {}", source.name, error.what()));
    }
  }();
  const auto width = static_cast<std::size_t>(network.input_columns());
  prepared.node_class = classes_of_rows(rows, width, source.opcodes);
  // Nodes of one class are encoded once.
  std::vector<float> features;
  std::vector<std::uint8_t> opcodes;
  for (std::size_t node = 0; node < prepared.node_class.size(); ++node) {
    if (static_cast<std::size_t>(prepared.node_class[node]) < opcodes.size()) continue;
    const auto row = std::span(rows).subspan(node * width, width);
    features.insert(features.end(), row.begin(), row.end());
    opcodes.push_back(source.opcodes[node]);
  }
  prepared.input = network.graph_arrays(features, opcodes);
  prepared.state_class =
      classes_of_rows(dataset.states(graph).features, network.schema().config_features);
  return prepared;
}

RefinedGraph refine_graph(const Graph& graph, const Array<std::int32_t>& node_class,
                          const PlanShape& shape) {
  return {graph.nodes, graph.edge_index, graph.config_nodes, node_class, shape, graph.config_edges};
}

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

// Takes first the files that no other process makes: processes that begin together share the work.
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
  const NodeFile::Source source{
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

PreparedGraphs::PreparedGraphs(const Dataset& dataset, const Network& network)
    : dataset_(dataset),
      network_(network),
      kept_(std::make_unique<Kept[]>(static_cast<std::size_t>(dataset.size()))) {}

void PreparedGraphs::share(bool refined, ThreadPool& pool) {
  files_ = PreparedFiles::open(dataset_, network_, refined, pool);
}

const PreparedGraph& PreparedGraphs::of(int graph) const {
  Kept& kept = kept_[graph];
  std::call_once(kept.prepare_once, [&] {
    require_nodes(dataset_, network_, graph);
    PreparedArrays arrays = files_ ? files_->read(graph) : prepare_input(dataset_, network_, graph);
    kept.graph.input = network_.graph_of(arrays.input);
    kept.graph.node_class = std::move(arrays.node_class);
    kept.graph.state_class = std::move(arrays.state_class);
    kept.found = std::move(arrays.refined);
  });
  return kept.graph;
}

const RefinedGraph& PreparedGraphs::refined(int graph) const {
  Kept& kept = kept_[graph];
  std::call_once(kept.refine_once, [&] {
    of(graph);
    if (kept.found) {
      kept.refined.emplace(*std::exchange(kept.found, std::nullopt), network_.plan_shape());
    } else {
      kept.refined.emplace(
          refine_graph(dataset_.graph(graph), kept.graph.node_class, network_.plan_shape()));
    }
  });
  return *kept.refined;
}

}  // namespace tpudist
