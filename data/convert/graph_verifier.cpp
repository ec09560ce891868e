#include "data/convert/graph_verifier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "data/convert/graph_schema.hpp"
#include "data/hdf5/row_groups.hpp"
#include "data/npz/feature_stream.hpp"
#include "data/shards/config_codec.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist {
namespace {

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

void verify_graph(const std::filesystem::path& shard, const GraphSummary& graph,
                  const Collection& collection, std::string_view split,
                  const std::optional<std::filesystem::path>& npz) {
  const GraphEntry entry{graph, std::string(split), shard};
  GraphVerifier verifier(entry, collection);
  verifier.check();
  if (npz) verifier.compare_with(*npz);
}

}  // namespace tpudist
