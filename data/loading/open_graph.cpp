#include "data/loading/open_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

std::string where(const OpenGraph& g) {
  return g.entry.shard.string() + ":" + g.entry.group;
}

// A code beyond its node's dictionary would select a state of another node.
template <typename Code>
void check_codes(std::span<const Code> codes, const OpenGraph& g, std::int64_t first) {
  const auto nodes = static_cast<std::size_t>(g.width);
  std::vector<Code> highest(nodes);  // compilers vectorise a loop of maxima
  for (std::size_t i = 0; i < codes.size(); i += nodes)
    for (std::size_t j = 0; j < nodes; ++j) highest[j] = std::max(highest[j], codes[i + j]);

  for (std::size_t j = 0; j < nodes; ++j) {
    const std::int32_t states = g.states.offsets[j + 1] - g.states.offsets[j];
    if (highest[j] < states) continue;
    std::size_t row = 0;
    while (codes[row * nodes + j] < states) ++row;
    throw DataError(fmt::format(
        "{}/config_codes: configuration {} has code {} of node {}, which has {} states; "
        "the file is damaged, convert again",
        where(g), first + static_cast<std::int64_t>(row), codes[row * nodes + j],
        g.reader->read_graph().config_nodes[j], states));  // its number in the whole graph
  }
}

template <typename Code>
void copy_states(const Code* codes, const std::int32_t* offsets, std::size_t count,
                 std::int32_t* states) {
  for (std::size_t j = 0; j < count; ++j) states[j] = offsets[j] + codes[j];
}

}  // namespace

std::uint64_t ConfigChunk::bytes() const {
  return std::visit([](const auto& values) { return values.bytes(); }, codes) + features.bytes();
}

struct CodeCache::Flight {
  std::condition_variable landed;
  bool done TPUDIST_GUARDED_BY(&CodeCache::mutex_) = false;
  Handle chunk;  // chunk and error belong to the reading thread until `done`
  std::exception_ptr error;
};

std::size_t CodeCache::KeyHash::operator()(const Key& key) const {
  return mix_key({static_cast<std::uint64_t>(key.graph), static_cast<std::uint64_t>(key.chunk)});
}

CodeCache::CodeCache(std::uint64_t capacity_bytes, Load load)
    : capacity_(capacity_bytes), load_(std::move(load)) {}
CodeCache::~CodeCache() = default;

CodeCache::Handle CodeCache::get(int graph, std::int64_t chunk) {
  const Key key{graph, chunk};
  MutexLock lock(mutex_);
  if (const auto found = kept_at_.find(key); found != kept_at_.end()) {
    kept_.splice(kept_.begin(), kept_, found->second);
    ++statistics_.hits;
    return found->second->chunk;
  }
  const auto found = flights_.find(key);
  if (found == flights_.end()) return load(key);

  const std::shared_ptr<Flight> flight = found->second;
  while (!flight->done) flight->landed.wait(lock);
  if (flight->error) std::rethrow_exception(flight->error);
  ++statistics_.hits;
  return flight->chunk;
}

CodeCache::Handle CodeCache::load(const Key& key) {
  const auto flight = std::make_shared<Flight>();
  flights_.emplace(key, flight);
  ++statistics_.loads;
  mutex_.unlock();
  try {
    flight->chunk = std::make_shared<const ConfigChunk>(load_(key.graph, key.chunk));
  } catch (...) {
    flight->error = std::current_exception();
  }
  mutex_.lock();
  if (flight->chunk) keep(key, flight->chunk);
  flights_.erase(key);
  flight->done = true;
  flight->landed.notify_all();
  if (flight->error) std::rethrow_exception(flight->error);
  return flight->chunk;
}

void CodeCache::keep(const Key& key, const Handle& chunk) {
  const std::uint64_t size = chunk->bytes();
  if (size > capacity_) return;
  while (statistics_.bytes + size > capacity_) {
    statistics_.bytes -= kept_.back().chunk->bytes();
    kept_at_.erase(kept_.back().key);
    kept_.pop_back();
  }
  kept_.push_front({key, chunk});
  kept_at_.emplace(key, kept_.begin());
  statistics_.bytes += size;
}

CodeCache::Statistics CodeCache::statistics() const {
  const MutexLock lock(mutex_);
  Statistics statistics = statistics_;
  statistics.chunks = kept_.size();
  return statistics;
}

OpenGraph OpenGraph::open(const GraphEntry& entry, const RowRules& rules) {
  OpenGraph g;
  g.entry = entry;
  g.reader.emplace(entry);
  if ((entry.config_nodes == 0) != entry.schema.tile)
    throw DataError(
        fmt::format("{}: has {} configurable nodes, so it is no graph of a {} collection", where(g),
                    entry.config_nodes, entry.schema.tile ? "tile" : "layout"));
  g.graph = g.reader->read_graph();
  g.times = g.reader->read_run_times();
  g.merged = choose_rows(g.times, rules, entry.name, where(g));
  g.coded = g.reader->coded();
  if (g.coded) g.states = g.reader->read_states();
  g.width = g.coded             ? entry.config_nodes
            : entry.schema.tile ? entry.schema.config_features
                                : entry.config_nodes * entry.schema.config_features;
  g.chunk_rows = g.reader->chunk_rows();
  return g;
}

ConfigChunk OpenGraph::read_chunk(std::int64_t number) const {
  const std::int64_t first = number * chunk_rows;
  const std::int64_t count = std::min(chunk_rows, entry.configs - first);
  ConfigChunk chunk;
  if (coded) {
    chunk.codes = reader->read_codes(first, count);
    std::visit([&](const auto& codes) { check_codes(std::span(codes), *this, first); },
               chunk.codes);
  } else {
    chunk.type = reader->feature_type();
    chunk.features = reader->read_stored_features(first, count);
  }
  return chunk;
}

void OpenGraph::open_reader() {
  reader.emplace(entry);
  if (reader->coded() != coded)
    throw DataError(where(*this) + ": differs from what was read before; convert again");
  chunk_rows = reader->chunk_rows();
}

ElementType OpenGraph::config_type() const {
  if (!coded) return reader->feature_type();
  return reader->code_bytes() == 1 ? ElementType::u8 : ElementType::u16;
}

std::uint64_t OpenGraph::config_bytes() const {
  return static_cast<std::uint64_t>(entry.configs) * static_cast<std::uint64_t>(width) *
         element_bytes(config_type());
}

void OpenGraph::copy_config(const ConfigChunk& chunk, std::int64_t config, std::size_t k,
                            std::span<std::int32_t> states_out,
                            std::span<float> features_out) const {
  const auto row = static_cast<std::size_t>(config % chunk_rows);
  const auto values = static_cast<std::size_t>(width);
  if (coded) {
    const auto copy = [&](const auto& codes) {
      copy_states(codes.data() + row * values, states.offsets.data(), values,
                  states_out.data() + k * values);
    };
    std::visit(copy, chunk.codes);
  } else {
    const std::size_t bytes = values * element_bytes(chunk.type);
    widen(std::span(chunk.features).subspan(row * bytes, bytes), chunk.type,
          features_out.subspan(k * values, values));
  }
}

std::uint64_t OpenGraph::resident_bytes() const {
  std::uint64_t bytes = 0;
  for_each_array(*this, [&](const auto& array) { bytes += array.bytes(); });
  for (const ConfigChunk& chunk : chunks) bytes += chunk.bytes();
  return bytes;
}

}  // namespace tpudist
