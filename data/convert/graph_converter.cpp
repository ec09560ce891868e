#include "data/convert/graph_converter.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "data/convert/graph_schema.hpp"
#include "data/hdf5/element_type.hpp"
#include "data/hdf5/row_groups.hpp"

namespace tpudist {
namespace {

// Converts the configurations of one graph into the open HDF5 group of a shard: as codes u8, or u16
// if a node has too many states, or as features if codes do not pay. The first pass writes u8 codes
// while they fit, and then only reads on, to decide what to write. So an array of more than one
// block is read at most twice, and nearly always once.
class ConfigConverter {
 public:
  ConfigConverter(const NpzReader& npz, const Collection& collection, const GraphSizes& sizes,
                  ShardWriter& shard, ConfigEncoder::Limits limits)
      : passes_(npz, collection),
        collection_(collection),
        sizes_(sizes),
        shard_(shard),
        limits_(limits) {}

  // Returns config_group [c].
  std::vector<std::int32_t> convert() {
    if (collection_.is_tile()) {
      type_ = passes_.type_of_rest(start().next(), ElementType::i8);
    } else {
      Result result = write_codes<std::uint8_t>();
      if (result == Result::too_wide) result = write_codes<std::uint16_t>();
      if (result == Result::written) return std::move(groups_);
    }
    write_features();
    return std::move(groups_);
  }

 private:
  enum class Result {
    written,
    too_wide,  // a node has too many states for `Code`
    gave_up,   // codes do not pay; type_ is set
  };

  FeatureStream& start() {
    hashes_.clear();
    return passes_.start();
  }

  void hash_rows(std::span<const std::byte> rows, std::size_t row_bytes) {
    for (std::size_t at = 0; at < rows.size(); at += row_bytes) {
      hashes_.push_back(hash64(rows.subspan(at, row_bytes)));
    }
  }

  template <typename Code>
  static bool fits(const ConfigEncoder& encoder) {
    return encoder.max_states_per_node() <= std::numeric_limits<Code>::max() + 1;
  }

  template <typename Code>
  Result write_codes() {
    FeatureStream& stream = start();
    const int width = collection_.schema.config_features;
    ConfigEncoder encoder(sizes_.config_nodes, width, limits_);
    Hdf5Dataset dataset = shard_.create("config_codes", element_type<Code>(),
                                        {sizes_.configs, sizes_.config_nodes}, kCodeChunkBytes);
    ChunkAppender appender(dataset, shard_.pool());
    const auto drop_codes = [&](Result result) {
      dataset = Hdf5Dataset();
      shard_.remove("config_codes");
      return result;
    };
    while (const auto* block = stream.next()) {
      const std::int64_t known = encoder.state_count();
      const bool repeat =
          encode_block<Code>(encoder, *block, stream, appender, dataset.row_bytes());
      // Only a new state can have a value that is not finite.
      if (encoder.state_count() != known) stream.check_finite(*block);
      if (repeat) continue;
      type_ = passes_.type_of_rest(block, narrowest_type(encoder.states().features));
      return drop_codes(Result::gave_up);
    }
    if (fits<Code>(encoder)) appender.finish();
    if (!coding_pays(sizes_.configs, sizes_.config_nodes, width, encoder.state_count(),
                     fits<std::uint8_t>(encoder) ? 1 : 2)) {
      type_ = narrowest_type(encoder.states().features);
      return drop_codes(Result::gave_up);
    }
    if (!fits<Code>(encoder)) return drop_codes(Result::too_wide);
    groups_ = group_equal_rows(dataset, hashes_);
    write_states(encoder);
    return Result::written;
  }

  // Returns the encoder's result. Codes that do not fit are only counted.
  template <typename Code>
  bool encode_block(ConfigEncoder& encoder, const FeatureStream::Block& block,
                    const FeatureStream& stream, ChunkAppender& appender, std::size_t row_bytes) {
    const auto values = static_cast<std::size_t>(sizes_.config_values);
    for (std::int64_t row = 0; row < block.rows;) {
      const std::int64_t left = block.rows - row;
      const auto bytes = fits<Code>(encoder) ? appender.room(left) : std::span<std::byte>();
      const std::size_t count =
          bytes.empty() ? static_cast<std::size_t>(left) : bytes.size() / row_bytes;
      codes_.resize(count * static_cast<std::size_t>(sizes_.config_nodes));
      const auto features =
          std::span(block.values).subspan(static_cast<std::size_t>(row) * values, count * values);
      if (!encoder.encode(features, codes_)) return false;
      if (const auto bad = encoder.first_difference(codes_, features)) {
        const auto first = static_cast<std::uint64_t>(block.first_row + row) * values;
        throw Error(ErrorKind::failed,
                    stream.where(first + *bad * collection_.schema.config_features) +
                        " does not decode to what was encoded");
      }
      row += static_cast<std::int64_t>(count);
      if (!fits<Code>(encoder)) continue;
      // The room begins at a multiple of the row in a buffer from operator new, so it is aligned.
      std::ranges::copy(codes_, reinterpret_cast<Code*>(bytes.data()));
      hash_rows(bytes, row_bytes);
      appender.advance(static_cast<std::int64_t>(count));
    }
    return true;
  }

  void write_states(const ConfigEncoder& encoder) {
    const ConfigStates states = encoder.states();
    const ElementType type = narrowest_type(states.features);
    std::vector<std::byte> stored(states.features.size() * element_bytes(type));
    if (narrow(states.features, type, stored)) {
      throw Error(ErrorKind::failed, "config_states do not fit their type");
    }
    shard_
        .create("config_states", type, {encoder.state_count(), collection_.schema.config_features})
        .write_all(stored, shard_.pool());
    shard_.write<std::int32_t>("config_state_offset", {sizes_.config_nodes + 1}, states.offsets);
  }

  void write_features() {
    FeatureStream& stream = start();
    std::vector<std::int64_t> shape = {sizes_.configs, sizes_.config_nodes,
                                       collection_.schema.config_features};
    if (collection_.is_tile()) shape.erase(shape.begin() + 1);
    Hdf5Dataset dataset = shard_.create("config_feat", type_, shape, kFeatureChunkBytes);
    ChunkAppender appender(dataset, shard_.pool());
    const auto values = static_cast<std::size_t>(sizes_.config_values);
    while (const auto* block = stream.next()) {
      for (std::int64_t row = 0; row < block->rows;) {
        const auto bytes = appender.room(block->rows - row);
        const std::size_t count = bytes.size() / dataset.row_bytes();
        const auto features = std::span(block->values)
                                  .subspan(static_cast<std::size_t>(row) * values, count * values);
        if (narrow(features, type_, bytes))
          throw Error(ErrorKind::failed, dataset.where() + ": a value does not fit its type");
        hash_rows(bytes, dataset.row_bytes());
        appender.advance(static_cast<std::int64_t>(count));
        row += static_cast<std::int64_t>(count);
      }
    }
    appender.finish();
    groups_ = group_equal_rows(dataset, hashes_);
  }

  ConfigPasses passes_;
  const Collection& collection_;
  const GraphSizes& sizes_;
  ShardWriter& shard_;
  const ConfigEncoder::Limits limits_;
  ElementType type_ = ElementType::i8;  // of the features, if not coded
  std::vector<std::uint16_t> codes_;    // of the rows being encoded
  std::vector<std::uint64_t> hashes_;
  std::vector<std::int32_t> groups_;
};

}  // namespace

void convert_graph(const NpzReader& npz, const Collection& collection, std::string_view split,
                   const SourceFile& source, ShardWriter& shard, ConfigEncoder::Limits limits) {
  const GraphSizes sizes = read_graph_sizes(npz, collection);
  RunTimes times = read_run_times(npz, collection, split, sizes);
  try {
    // Release the graph once it is written: the features of the largest take 24 MB.
    shard.begin(read_graph(npz, collection, sizes), sizes.configs, source);
    times.group = ConfigConverter(npz, collection, sizes, shard, limits).convert();
    shard.write(times);
    shard.end();
  } catch (const DataError&) {
    shard.drop();
    throw;
  }
}

std::uint64_t conversion_bytes(const GraphSizes& sizes, const FeatureSchema& schema,
                               ConfigEncoder::Limits limits) {
  const auto u = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t graph =
      u(sizes.nodes * schema.node_features) * sizeof(float) * 3 / 2 + u(sizes.edges) * 12;
  const std::uint64_t row = u(sizes.config_values) * sizeof(float);
  const std::uint64_t blocks = 5 * std::max<std::uint64_t>(row, 1 << 20);
  const std::uint64_t dictionary =
      std::min<std::uint64_t>(limits.dictionary_bytes, u(sizes.configs) * row) * 3 / 2;
  const std::uint64_t rows = u(sizes.configs) * 48;
  return (4 << 20) + std::max(graph, blocks + dictionary) + rows;
}

}  // namespace tpudist
