#include "data/convert/source_schema.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <system_error>
#include <type_traits>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "data/convert/conversion_plan.hpp"
#include "data/npz/npz_reader.hpp"
#include "data/schema/collection_folders.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// The last axis of an array of `axes` axes; nothing if a schema cannot have this width.
std::optional<int> width_of(const NpzArray& array, std::size_t axes, int most) {
  if (array.shape().size() != axes) return std::nullopt;
  const std::int64_t width = array.shape().back();
  if (width < 1 || width > most) return std::nullopt;
  return static_cast<int>(width);
}

// Nothing if the file is damaged or lacks widths; its conversion reports the fault.
std::optional<FeatureSchema> schema_of_file(const fs::path& file, const Collection& collection) {
  FeatureSchema schema = Collection{collection.name}.schema;
  if (!is_npz(file)) return schema;  // features of a program are TpuGraphs'
  try {
    const NpzReader npz(file);
    const auto nodes = width_of(npz.open("node_feat"), 2, kMostNodeFeatures);
    const auto configs = schema.tile
                             ? width_of(npz.open("config_feat"), 2, kMostConfigFeatures)
                             : width_of(npz.open("node_config_feat"), 3, kMostConfigFeatures);
    if (!nodes || !configs) return std::nullopt;
    if (*nodes != schema.node_features || *configs != schema.config_features)
      schema.layout_columns = schema.dimension_columns = {};
    schema.node_features = *nodes;
    schema.config_features = *configs;
    if (!npz.contains("node_opcode")) schema.opcodes = 0;
    return schema;
  } catch (const Error&) {
    return std::nullopt;
  }
}

FeatureSchema schema_of_arrays(const fs::path& npz_root, const Collection& collection) {
  for (const PlannedShard& shard : plan_shards(npz_root, collection)) {
    for (const fs::path& file : shard.sources) {
      if (const auto schema = schema_of_file(file, collection)) return *schema;
    }
  }
  return Collection{collection.name}.schema;
}

void read_schema_file(const fs::path& file, FeatureSchema& schema) {
  ConfigDocument document = ConfigDocument::load(file);
  ConfigNode root = document.root();
  const int given =
      static_cast<int>(root.integer("node_features", schema.node_features, {1, kMostNodeFeatures}));
  if (given != schema.node_features) schema.layout_columns = schema.dimension_columns = {};
  schema_fields(schema, [&]<typename T>(const char* key, T& value) {
    if constexpr (std::is_same_v<T, ColumnRange>) {
      if (!parse_columns(root.text(key, to_text(value)), given, value))
        root.mistake(key, fmt::format("must be `none` or columns below {}, such as 2-5", given));
    } else {
      const bool opcodes = std::string_view(key) == "opcodes";
      const int most = opcodes                                    ? kMostOpcodes
                       : std::string_view(key) == "node_features" ? kMostNodeFeatures
                                                                  : kMostConfigFeatures;
      value = static_cast<int>(root.integer(key, value, {opcodes ? 0 : 1, most}));
    }
  });
  document.finish();
}

}  // namespace

Collection with_source_schema(const fs::path& npz_root, Collection collection) {
  const fs::path file = npz_root / collection.folder() / kSchemaName;
  std::error_code error;
  const bool given = fs::exists(fs::symlink_status(file, error));  // true for a dangling link too
  if (collection.is_tpugraphs()) {
    if (given) {
      throw ConfigError(
          fmt::format("{}: {} has the schema of TpuGraphs: remove the file, or give "
                      "own data a name of their own",
                      file.string(), collection.name));
    }
    return collection;
  }
  collection.schema = schema_of_arrays(npz_root, collection);
  if (given) read_schema_file(file, collection.schema);
  return collection;
}

}  // namespace tpudist
