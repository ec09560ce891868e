#include "data/shards/shard_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/means.hpp"
#include "data/shards/manifest.hpp"
#include "data/shards/shard_file.hpp"

namespace tpudist {
namespace {

// The graphs of all parts, named by their ids.
std::vector<GraphEntry> list_merged(const std::filesystem::path& shard_root,
                                    const std::vector<Collection>& parts, std::string_view split) {
  std::vector<GraphEntry> entries;
  for (const std::string_view wanted : kSplits) {
    if (!split.empty() && split != wanted) continue;
    const std::size_t begin = entries.size();
    for (const Collection& part : parts) {
      for (GraphEntry& entry : list_graphs(shard_root, part, wanted)) {
        entry.name = part.name + ":" + entry.name;
        entries.push_back(std::move(entry));
      }
    }
    std::ranges::sort(std::span(entries).subspan(begin), {}, &GraphEntry::name);
  }
  return entries;
}

}  // namespace

std::vector<GraphEntry> list_graphs(const std::filesystem::path& shard_root,
                                    const Collection& collection, std::string_view split) {
  if (is_joined(collection)) return list_merged(shard_root, parts_of(collection), split);
  const std::filesystem::path folder = std::filesystem::absolute(shard_root / collection.folder());
  const Manifest manifest = read_manifest(folder / kManifestName, collection);
  std::vector<GraphEntry> entries;
  for (const std::string_view wanted : kSplits) {
    if (!split.empty() && split != wanted) continue;
    const std::size_t begin = entries.size();
    for (const Manifest::Shard& shard : manifest.shards) {
      if (shard.split != wanted) continue;
      check_shard_present(folder, shard);
      for (const GraphSummary& graph : shard.graphs) {
        entries.push_back({graph, shard.split, folder / shard.file, shard.hash});
      }
    }
    const auto own = std::span(entries).subspan(begin);
    std::ranges::sort(own, {}, &GraphEntry::name);
    const auto twice = std::ranges::adjacent_find(own, {}, &GraphEntry::name);
    if (twice != own.end())
      throw DataError(fmt::format("{}: lists the graph {} of {} twice; convert again",
                                  (folder / kManifestName).string(), twice->name, wanted));
  }
  return entries;
}

void check_shard_hashes(std::span<const GraphEntry> entries, ThreadPool& pool) {
  std::map<std::filesystem::path, std::uint64_t> hashes;  // each file once
  for (const GraphEntry& entry : entries) hashes.emplace(entry.shard, entry.shard_hash);
  const std::vector<std::pair<std::filesystem::path, std::uint64_t>> shards(hashes.begin(),
                                                                            hashes.end());
  pool.parallel_for(std::ssize(shards), [&](std::int64_t i) {
    const auto& [path, hash] = shards[i];
    if (hash_file(path) == hash) return;
    throw DataError(path.string() +
                    ": its hash differs from the manifest's, so it is damaged; convert again");
  });
}

struct GraphReader::Impl {
  explicit Impl(const GraphEntry& graph)
      : entry(graph),
        file(open_shard(graph.shard)),
        group(open_group(file, graph.group, graph.shard.string())),
        where(graph.shard.string() + ":" + graph.group) {
    const auto check = [&](std::string_view attribute, std::int64_t expected) {
      if (read_integer_attribute(group, std::string(attribute), where) != expected) {
        throw DataError(fmt::format("{}: {} differs from the manifest's {}; convert again", where,
                                    attribute, expected));
      }
    };
    check("nodes", entry.nodes);
    check("edges", entry.edges);
    check("configs", entry.configs);
    check("config_nodes", entry.config_nodes);
    coded = has_link(group, "config_codes");
    if (coded && entry.config_nodes == 0)
      throw DataError(where + ": has codes but no configurable nodes; convert again");
    configs = Hdf5Dataset::open(group, coded ? "config_codes" : "config_feat", where);
    if (coded) {
      const bool wide = configs.type() == ElementType::u16;
      check_array(configs, wide ? ElementType::u16 : ElementType::u8,
                  std::vector{entry.configs, entry.config_nodes});
    } else {
      check_feature_type(configs);
      std::vector<std::int64_t> shape = {entry.configs, entry.config_nodes,
                                         entry.schema.config_features};
      if (entry.schema.tile) shape.erase(shape.begin() + 1);
      check_array(configs, configs.type(), shape);
    }
  }

  template <typename T>
  std::vector<T> read(const std::string& name, std::vector<std::int64_t> shape) const {
    return read_array<T>(group, name, std::move(shape), where);
  }

  // Integers with every value in least .. most.
  template <typename T>
  std::vector<T> read_within(const std::string& name, std::vector<std::int64_t> shape,
                             std::int64_t least, std::int64_t most = INT64_MAX) const {
    std::vector<T> values = read<T>(name, std::move(shape));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < least || values[i] > most) {
        throw DataError(fmt::format("{}/{}: value {} of element {} is out of range; convert again",
                                    where, name, values[i], i));
      }
    }
    return values;
  }

  void require(bool condition, std::string_view call) const {
    if (!condition) throw std::logic_error(fmt::format("{}: {}", where, call));
  }

  GraphEntry entry;
  Hdf5Id file, group;
  std::string where;
  bool coded = false;
  Hdf5Dataset configs;
};

GraphReader::GraphReader(const GraphEntry& entry) : impl_(std::make_unique<Impl>(entry)) {}
GraphReader::~GraphReader() = default;
GraphReader::GraphReader(GraphReader&&) noexcept = default;
GraphReader& GraphReader::operator=(GraphReader&&) noexcept = default;

Graph GraphReader::read_graph() const {
  const GraphEntry& entry = impl_->entry;
  const std::int64_t n = entry.nodes;
  Graph graph;
  graph.name = entry.name;
  graph.nodes = n;
  graph.edges = entry.edges;
  graph.node_features = impl_->read<float>("node_feat", {n, entry.schema.node_features});
  require_finite(graph.node_features, impl_->where + "/node_feat");
  const std::int64_t opcodes = entry.schema.opcodes;
  graph.opcodes = opcodes > 0 ? impl_->read_within<std::uint8_t>("node_opcode", {n}, 0, opcodes - 1)
                              : std::vector<std::uint8_t>(static_cast<std::size_t>(n));
  graph.edge_index = impl_->read_within<std::int32_t>("edge_index", {entry.edges, 2}, 0, n - 1);
  if (entry.config_nodes > 0) {
    graph.config_nodes =
        impl_->read_within<std::int32_t>("config_nodes", {entry.config_nodes}, 0, n - 1);
    std::vector<std::int32_t> sorted(graph.config_nodes.begin(), graph.config_nodes.end());
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      throw DataError(
          fmt::format("{}/config_nodes: has node {} twice; convert again", impl_->where, *twice));
  }
  if (has_link(impl_->group, "node_splits")) {
    graph.node_splits = impl_->read<std::int64_t>("node_splits", {1, -1});
  }
  return graph;
}

RunTimes GraphReader::read_run_times() const {
  const std::int64_t c = impl_->entry.configs;
  RunTimes times;
  const bool hidden = impl_->entry.split == "test";  // only there may run times be 0
  times.runtime = impl_->read_within<std::int64_t>("runtime", {c}, hidden ? 0 : 1);
  if (has_link(impl_->group, "runtime_normalizer")) {
    times.normalizer = impl_->read_within<std::int64_t>("runtime_normalizer", {c}, 1);
  }
  times.group = impl_->read_within<std::int32_t>("config_group", {c}, 0, c - 1);
  return times;
}

bool GraphReader::coded() const {
  return impl_->coded;
}

ConfigStates GraphReader::read_states() const {
  impl_->require(impl_->coded, "read_states of a graph without codes");
  ConfigStates states;
  states.offsets =
      impl_->read<std::int32_t>("config_state_offset", {impl_->entry.config_nodes + 1});
  const Hdf5Dataset stored = Hdf5Dataset::open(impl_->group, "config_states", impl_->where);
  check_array(
      stored, stored.type(),
      std::vector<std::int64_t>{states.offsets.back(), impl_->entry.schema.config_features});
  if (states.offsets.front() != 0 || !std::ranges::is_sorted(states.offsets)) {
    throw DataError(impl_->where + "/config_state_offset: does not rise from 0");
  }
  states.features = read_widened(stored, 0, stored.rows());
  return states;
}

int GraphReader::code_bytes() const {
  impl_->require(impl_->coded, "code_bytes of a graph without codes");
  return static_cast<int>(element_bytes(impl_->configs.type()));
}

ConfigCodes GraphReader::read_codes(std::int64_t first, std::int64_t count) const {
  impl_->require(impl_->coded, "read_codes of a graph without codes");
  const auto size = static_cast<std::size_t>(count * impl_->entry.config_nodes);
  const auto fill = [&]<typename Code>(std::vector<Code> codes) -> ConfigCodes {
    impl_->configs.read_rows(first, count, std::as_writable_bytes(std::span(codes)));
    return Array<Code>(std::move(codes));
  };
  if (code_bytes() == 1) return fill(std::vector<std::uint8_t>(size));
  return fill(std::vector<std::uint16_t>(size));
}

std::vector<float> GraphReader::read_config_features(std::int64_t first, std::int64_t count) const {
  impl_->require(!impl_->coded, "read_config_features of a graph with codes");
  return read_widened(impl_->configs, first, count);
}

ElementType GraphReader::feature_type() const {
  impl_->require(!impl_->coded, "feature_type of a graph with codes");
  return impl_->configs.type();
}

std::vector<std::byte> GraphReader::read_stored_features(std::int64_t first,
                                                         std::int64_t count) const {
  impl_->require(!impl_->coded, "read_stored_features of a graph with codes");
  std::vector<std::byte> features(static_cast<std::size_t>(count) * impl_->configs.row_bytes());
  impl_->configs.read_rows(first, count, features);
  require_finite(impl_->configs, first, features);
  return features;
}

std::int64_t GraphReader::chunk_rows() const {
  return impl_->configs.chunk_rows();
}

RunTimeStatistics run_time_statistics(const RunTimes& times) {
  struct Repeats {
    std::int64_t count = 0;
    double min = 0, max = 0;
  };
  RunTimeStatistics statistics;
  if (times.configs() == 0) return statistics;
  std::vector<Repeats> groups(static_cast<std::size_t>(*std::ranges::max_element(times.group)) + 1);
  for (std::int64_t i = 0; i < times.configs(); ++i) {
    Repeats& group = groups[times.group[i]];
    const double target = times.target(i);
    group.min = group.count == 0 ? target : std::min(group.min, target);
    group.max = group.count == 0 ? target : std::max(group.max, target);
    ++group.count;
  }
  const auto [min, max] = std::ranges::minmax_element(times.runtime);
  statistics.min = *min;
  statistics.max = *max;
  statistics.distinct_configs = std::ssize(groups);
  std::vector<double> spreads;
  for (const Repeats& group : groups) {
    statistics.most_repeats = std::max(statistics.most_repeats, group.count);
    if (group.count < 2) continue;
    ++statistics.repeated_configs;
    statistics.repeated_rows += group.count;
    if (group.min > 0) spreads.push_back(group.max / group.min - 1);
  }
  std::ranges::sort(spreads);
  if (!spreads.empty()) {
    statistics.spread = {quantile(spreads, 0.25), quantile(spreads, 0.5), quantile(spreads, 0.75)};
  }
  return statistics;
}

std::vector<GraphStatistics> collection_statistics(const std::filesystem::path& shard_root,
                                                   const Collection& collection) {
  std::vector<GraphStatistics> all;
  const std::vector<GraphEntry> entries = list_graphs(shard_root, collection);
  ThreadPool alone(1);
  check_shard_hashes(entries, alone);
  for (const GraphEntry& entry : entries) {
    all.push_back({entry, run_time_statistics(GraphReader(entry).read_run_times())});
  }
  return all;
}

}  // namespace tpudist
