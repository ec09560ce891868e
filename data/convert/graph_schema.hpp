#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "data/hdf5/element_type.hpp"
#include "data/npz/feature_stream.hpp"
#include "data/npz/npz_reader.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"

namespace tpudist {

// The limits for one graph. The real data set's largest graph has 43,615 nodes, 73,881 edges and
// 100,040 configurations.
inline constexpr std::int64_t kMaxEdges = 1 << 23;
inline constexpr std::int64_t kMaxConfigs = 1 << 24;

// The sizes in the arrays' headers, checked against each other. Only headers have been read.
struct GraphSizes {
  std::int64_t nodes = 0, edges = 0, configs = 0;
  std::int64_t config_nodes = 0;  // 0 for tile
  // Number of values of one configuration: config_nodes * C (layout) or C (tile).
  std::int64_t config_values = 0;
};

// Each function reads one NPZ file of `collection`, whose schema gives the widths, and throws
// DataError with file, array and index at the first value that violates the schema.

// Checks that every array exists with its type and shape, and returns the sizes. Without
// `needs_run_times`, as for a module to rank, config_runtime and config_runtime_normalizers may be
// missing.
GraphSizes read_graph_sizes(const NpzReader& npz, const Collection& collection,
                            bool needs_run_times = true);

// Reads node_feat, node_opcode, edge_index, node_config_ids and node_splits. The graph's name is
// the file's stem.
Graph read_graph(const NpzReader& npz, const Collection& collection, const GraphSizes& sizes);

// Reads config_runtime and config_runtime_normalizers; `group` stays empty. Run times must be
// positive, or 0 in the split "test".
RunTimes read_run_times(const NpzReader& npz, const Collection& collection, std::string_view split,
                        const GraphSizes& sizes);

// read_run_times for optional run times: nothing if config_runtime is missing or all zero. Throws
// if only some are zero. `normalizer` is empty if the file has none.
std::optional<RunTimes> read_optional_run_times(const NpzReader& npz, const Collection& collection,
                                                const GraphSizes& sizes);

// Opens node_config_feat [c, nc, C] or config_feat [c, C] for streaming.
NpzArray open_config_features(const NpzReader& npz, const Collection& collection);

// Reads the configurations of one graph several times. If the array fits in one block, it is read
// from the file only once. Borrows its arguments.
class ConfigPasses {
 public:
  ConfigPasses(const NpzReader& npz, const Collection& collection)
      : npz_(npz), collection_(collection) {}

  // Starts a pass: a stream of the configurations from the first one on.
  FeatureStream& start();
  // Reads the current pass to its end, starting with `block`. Returns the type that holds all
  // values of the array: i8, i16, i32 or f32. `least` is the type that the values before `block`
  // need. Throws DataError if a value is not finite.
  ElementType type_of_rest(const FeatureStream::Block* block, ElementType least);

 private:
  const NpzReader& npz_;
  const Collection& collection_;
  std::optional<FeatureStream> stream_;
};

}  // namespace tpudist
