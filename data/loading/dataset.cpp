#include "data/loading/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "data/loading/open_graph.hpp"

namespace tpudist {
namespace {

std::uint64_t hash_of(const DatasetOptions& options, const std::vector<OpenGraph>& graphs) {
  std::vector<GraphEntry> entries;
  for (const OpenGraph& g : graphs) entries.push_back(g.entry);
  return hash_selection(options, entries);
}

std::string quoted(const std::vector<std::string>& patterns) {
  return patterns.empty() ? "nothing" : fmt::format("'{}'", join(patterns, "', '"));
}

std::vector<GraphEntry> select_graphs(const DatasetOptions& options, const std::string& split,
                                      const std::vector<std::string>& include,
                                      const std::vector<std::string>& exclude) {
  if (std::ranges::find(kSplits, split) == std::end(kSplits))
    throw ConfigError(fmt::format("unknown split '{}'; the splits are train, valid, test", split));
  const std::vector<GraphEntry> found = list_graphs(options.shards, options.collection, split);
  const auto other = std::ranges::find_if(
      found, [&](const GraphEntry& entry) { return entry.schema != options.collection.schema; });
  if (other != found.end()) {
    const std::string_view part = collection_of_id(other->name);
    throw DataError(fmt::format(
        "{}: the graphs of {} have {}; those asked for have {}: this network was made for others",
        options.shards.string(), part.empty() ? options.collection.name : part,
        to_text(other->schema), to_text(options.collection.schema)));
  }
  std::vector<GraphEntry> entries = filter_graphs(found, split, include, exclude);
  if (!entries.empty()) return entries;
  const std::string what = fmt::format("{} {}", options.collection.name, split);
  if (found.empty()) {
    throw ConfigError(
        fmt::format("the shards in {} hold no graph of {}", options.shards.string(), what));
  }
  throw ConfigError(fmt::format("none of the {} graphs of {} is left: included {}, excluded {}",
                                found.size(), what, include.empty() ? "all" : quoted(include),
                                quoted(exclude)));
}

}  // namespace

std::string DatasetOptions::splits() const {
  return second ? fmt::format("{}+{}", split, second->name) : split;
}

struct Dataset::Impl {
  DatasetOptions options;
  std::vector<OpenGraph> graphs;
  std::vector<std::string> left_out;
  std::uint64_t selection = 0;
  bool in_memory = false;
  std::unique_ptr<CodeCache> cache;  // when streaming
  std::optional<NodeFile> shared;    // if the node keeps one copy

  const OpenGraph& at(int i) const { return graphs.at(i); }
  bool keeps_all() const { return options.rows().keep_all(); }

  void decide_cache(const std::vector<GraphEntry>& entries);
  void open_all(const std::vector<GraphEntry>& entries, ThreadPool& pool);
  void load_all(ThreadPool& pool);
  void leave_out_empty();
  void stream(const OpenGraph& g, Slate& slate) const;
  // Of graphs that are reduced and have all of their configurations as rows.
  static std::unique_ptr<Impl> in_memory_of(const DatasetOptions& options,
                                            std::vector<OpenGraph> graphs);
};

std::unique_ptr<Dataset::Impl> Dataset::Impl::in_memory_of(const DatasetOptions& options,
                                                           std::vector<OpenGraph> graphs) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->options.duplicates = DuplicatesPolicy::keep;
  impl->options.max_configs = 0;
  impl->options.least_entropy = 0;
  impl->graphs = std::move(graphs);
  impl->selection = hash_of(impl->options, impl->graphs);
  impl->in_memory = true;
  return impl;
}

void Dataset::Impl::decide_cache(const std::vector<GraphEntry>& entries) {
  std::uint64_t total = 0;
  for (const GraphEntry& entry : entries) total += entry.config_bytes();
  in_memory = options.cache == CacheMode::automatic ? total <= options.cache_bytes
                                                    : options.cache == CacheMode::memory;
}

void Dataset::Impl::open_all(const std::vector<GraphEntry>& entries, ThreadPool& pool) {
  check_shard_hashes(entries, pool);
  graphs.resize(entries.size());
  pool.parallel_for(std::ssize(entries), [&](std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    graphs[i] = open_graph(entries[i], options);
  });
}

void Dataset::Impl::load_all(ThreadPool& pool) {
  std::vector<std::pair<OpenGraph*, std::size_t>> work;  // chunks of all graphs
  for (OpenGraph& g : graphs) {
    g.chunks.resize(g.chunk_count());
    for (std::size_t c = 0; c < g.chunks.size(); ++c) work.emplace_back(&g, c);
  }
  pool.parallel_for(std::ssize(work), [&](std::int64_t i) {
    const auto [g, c] = work[i];
    g->chunks[c] = g->read_chunk(static_cast<std::int64_t>(c));
  });
  for (OpenGraph& g : graphs) g.reader.reset();
}

void Dataset::Impl::leave_out_empty() {
  if (options.least_entropy == 0) return;
  std::erase_if(graphs, [&](const OpenGraph& g) {
    const bool empty = g.merged.configs.empty();
    if (empty) left_out.push_back(g.entry.name);
    return empty;
  });
  if (!graphs.empty()) return;
  throw ConfigError(fmt::format(
      "the entropy filter {} leaves no run time of the {} graphs of {} {}; `tpudist inspect "
      "--suspects` shows what it removes",
      options.least_entropy, left_out.size(), options.collection.name, options.splits()));
}

// Fills the slate chunk by chunk; fetches each chunk once.
void Dataset::Impl::stream(const OpenGraph& g, Slate& slate) const {
  std::vector<std::size_t> order(slate.configs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t k) { return slate.configs[k]; });
  const int graph = slate.graph;
  CodeCache::Handle chunk;
  std::int64_t current = -1;
  for (const std::size_t k : order) {
    const std::int64_t number = slate.configs[k] / g.chunk_rows;
    if (number != current) chunk = cache->get(graph, number);
    current = number;
    g.copy_config(*chunk, slate.configs[k], k, slate.states, slate.local_states);
  }
}

Dataset::Dataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

Dataset Dataset::open(const DatasetOptions& options, ThreadPool& pool) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  const std::vector<GraphEntry> entries = select_graphs(options);
  impl->decide_cache(entries);
  auto shared = open_node_cache(options, entries, impl->in_memory, pool);
  if (shared) {
    if (!impl->in_memory) check_shard_hashes(entries, pool);
    impl->graphs = read_graphs(shared->file(), entries, impl->in_memory);
    impl->shared.emplace(std::move(*shared));
  } else {
    impl->open_all(entries, pool);
    if (impl->in_memory) impl->load_all(pool);
  }
  impl->selection = hash_of(options, impl->graphs);
  impl->leave_out_empty();
  if (!impl->in_memory) {
    impl->cache = std::make_unique<CodeCache>(
        options.cache_bytes, [&graphs = impl->graphs](int graph, std::int64_t chunk) {
          return graphs[graph].read_chunk(chunk);
        });
  }
  return Dataset(std::move(impl));
}

Dataset Dataset::of_graphs(const DatasetOptions& options, std::vector<OpenGraph> graphs) {
  for (const OpenGraph& g : graphs) {
    if (std::ssize(g.chunks) != g.chunk_count())
      throw std::invalid_argument(g.entry.name + ": its configurations are not in memory");
  }
  for (OpenGraph& g : graphs) g.graph = reduced_graph(std::move(g.graph), options.reduction);
  return Dataset(Impl::in_memory_of(options, std::move(graphs)));
}

const DatasetOptions& Dataset::options() const {
  return impl_->options;
}
int Dataset::size() const {
  return static_cast<int>(impl_->graphs.size());
}
const Graph& Dataset::graph(int i) const {
  return impl_->at(i).graph;
}
std::int64_t Dataset::seen_nodes(int i) const {
  return impl_->options.reduction.seen(graph(i).nodes);
}
const GraphEntry& Dataset::entry(int i) const {
  return impl_->at(i).entry;
}
const RunTimes& Dataset::run_times(int i) const {
  return impl_->at(i).times;
}
const ConfigStates& Dataset::states(int i) const {
  return impl_->at(i).states;
}
bool Dataset::coded(int i) const {
  return impl_->at(i).coded;
}
bool Dataset::in_memory() const {
  return impl_->in_memory;
}
const std::vector<std::string>& Dataset::left_out() const {
  return impl_->left_out;
}
std::uint64_t Dataset::selection_hash() const {
  return impl_->selection;
}

std::int64_t Dataset::rows(int i) const {
  const OpenGraph& g = impl_->at(i);
  return impl_->keeps_all() ? g.times.configs() : std::ssize(g.merged.configs);
}

std::vector<std::int64_t> Dataset::rows_per_graph() const {
  std::vector<std::int64_t> all;
  for (int g = 0; g < size(); ++g) all.push_back(rows(g));
  return all;
}

std::int64_t Dataset::config_of(int i, std::int64_t row) const {
  if (row < 0 || row >= rows(i)) {
    throw std::out_of_range(
        fmt::format("row {} of {}, which has {}", row, impl_->at(i).entry.name, rows(i)));
  }
  return impl_->keeps_all() ? row : impl_->at(i).merged.configs[row];
}

double Dataset::target(int i, std::int64_t row) const {
  const std::int64_t config = config_of(i, row);
  return impl_->keeps_all() ? impl_->at(i).times.target(config) : impl_->at(i).merged.targets[row];
}

Slate Dataset::slate(int i, std::span<const std::int64_t> rows) const {
  const OpenGraph& g = impl_->at(i);
  const std::size_t k = rows.size();
  Slate slate;
  slate.graph = i;
  slate.configs.reserve(k);
  slate.targets.reserve(k);
  for (const std::int64_t row : rows) {
    slate.configs.push_back(config_of(i, row));
    slate.targets.push_back(target(i, row));
  }
  if (g.coded) {
    slate.states.resize(k * static_cast<std::size_t>(g.width));
  } else {  // an own table, with a row for every entry
    slate.states.resize(k * std::max<std::size_t>(g.graph.config_nodes.size(), 1));
    std::iota(slate.states.begin(), slate.states.end(), 0);
    slate.local_states.resize(k * static_cast<std::size_t>(g.width));
  }
  if (!impl_->in_memory) {
    impl_->stream(g, slate);
    return slate;
  }
  for (std::size_t slot = 0; slot < k; ++slot) {
    const std::int64_t config = slate.configs[slot];
    g.copy_config(g.chunks[config / g.chunk_rows], config, slot, slate.states, slate.local_states);
  }
  return slate;
}

Slate part_of_slate(const Slate& slate, std::int64_t first, std::int64_t count) {
  const auto part = [&](const auto& values) {
    const auto width = static_cast<std::int64_t>(values.size() / slate.configs.size());
    const auto begin = values.begin() + first * width;
    return std::remove_cvref_t<decltype(values)>(begin, begin + count * width);
  };
  return {slate.graph, part(slate.configs), part(slate.targets), part(slate.states),
          slate.local_states};
}

Dataset Dataset::of_slate(const DatasetOptions& options, GraphEntry entry, Graph graph,
                          const Slate& slate) {
  OpenGraph own;
  own.entry = std::move(entry);
  own.graph = std::move(graph);
  const std::int64_t configs = std::ssize(slate.configs);
  own.entry.configs = own.chunk_rows = configs;
  std::vector<std::int32_t> group(slate.configs.size());
  std::iota(group.begin(), group.end(), 0);
  own.times.runtime = std::vector<std::int64_t>(slate.configs.size());
  own.times.group = std::move(group);
  const auto width = static_cast<std::size_t>(options.collection.schema.config_features);
  own.width = std::ssize(slate.states) / configs * static_cast<std::int64_t>(width);
  std::vector<std::byte> features;
  features.reserve(slate.states.size() * width * sizeof(float));
  for (const std::int32_t state : slate.states) {
    const auto row = std::as_bytes(
        std::span(slate.local_states).subspan(static_cast<std::size_t>(state) * width, width));
    features.insert(features.end(), row.begin(), row.end());
  }
  own.chunks.resize(1);
  own.chunks.front().type = ElementType::f32;
  own.chunks.front().features = std::move(features);
  std::vector<OpenGraph> graphs;
  graphs.push_back(std::move(own));
  return Dataset(Impl::in_memory_of(options, std::move(graphs)));
}

std::uint64_t Dataset::resident_bytes() const {
  std::uint64_t bytes = impl_->cache ? impl_->cache->statistics().bytes : 0;
  if (impl_->shared) return bytes;
  for (const OpenGraph& g : impl_->graphs) bytes += g.resident_bytes();
  return bytes;
}

std::uint64_t Dataset::shared_bytes() const {
  return impl_->shared ? impl_->shared->file()->bytes() : 0;
}

OpenGraph open_graph(const GraphEntry& entry, const DatasetOptions& options) {
  OpenGraph g = OpenGraph::open(entry, options.rows());
  g.graph = reduced_graph(std::move(g.graph), options.reduction);
  return g;
}

std::vector<GraphEntry> select_graphs(const DatasetOptions& options) {
  std::vector<GraphEntry> entries =
      select_graphs(options, options.split, options.include, options.exclude);
  if (!options.second) return entries;
  const SecondSplit& second = *options.second;
  for (GraphEntry& entry : select_graphs(options, second.name, second.include, second.exclude))
    entries.push_back(std::move(entry));
  return entries;
}

std::vector<GraphEntry> filter_graphs(std::span<const GraphEntry> graphs, std::string_view split,
                                      const std::vector<std::string>& include,
                                      const std::vector<std::string>& exclude) {
  std::vector<GraphEntry> left;
  std::ranges::copy_if(graphs, std::back_inserter(left), [&](const GraphEntry& graph) {
    return graph.split == split && (include.empty() || fits_graph(include, graph.name)) &&
           !fits_graph(exclude, graph.name);
  });
  return left;
}

std::uint64_t hash_selection(const DatasetOptions& options, std::span<const GraphEntry> graphs) {
  Hasher hasher;
  hasher.update(std::string_view("tpudist selection 1"));
  hasher.update(std::string_view(options.collection.name));
  hasher.update(std::string_view(options.splits()));
  hasher.update(options.duplicates);
  if (options.max_configs > 0) hasher.update(options.max_configs);
  if (options.least_entropy > 0) hasher.update(options.least_entropy);
  for (const GraphEntry& graph : graphs) {
    hasher.update(std::string_view(graph.name));
    hasher.update(graph.source.hash);
    hasher.update(graph.configs);
    if (options.second) hasher.update(std::string_view(graph.split));
  }
  return hasher.digest();
}

SlateOrder order_of(const OrderOptions& options, const Dataset& data) {
  std::vector<std::vector<std::int32_t>> fastest_first;
  for (int g = 0; options.mix != SlateMix::uniform && g < data.size(); ++g) {
    std::vector<double> targets;
    for (std::int64_t row = 0; row < data.rows(g); ++row) targets.push_back(data.target(g, row));
    std::vector<std::int32_t>& rows = fastest_first.emplace_back(targets.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::ranges::stable_sort(rows, {}, [&](std::int32_t row) { return targets[row]; });
  }
  return SlateOrder(options, data.rows_per_graph(), data.selection_hash(),
                    std::move(fastest_first));
}

std::optional<std::uint64_t> segment_hash(const Dataset& data) {
  if (data.options().reduction.segments == SegmentCut::none) return std::nullopt;
  Hasher hasher;
  for (int g = 0; g < data.size(); ++g) {
    const std::span<const std::int32_t> segment = data.graph(g).segment;
    hasher.update(std::ssize(segment));
    hasher.update(segment);
  }
  return hasher.digest();
}

}  // namespace tpudist
