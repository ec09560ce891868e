#include "data/convert/conversion_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <type_traits>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "data/convert/source_npz.hpp"
#include "data/npz/npz_reader.hpp"
#include "data/shards/shard_file.hpp"

namespace tpudist {
namespace {

// Throws for a graph name that cannot be a CSV field, a table line and a JSON key.
void require_usable_name(const std::filesystem::path& file) {
  const std::string name = file.stem().string();
  if (is_graph_name(name) && name.find_first_of(",\"") == name.npos) return;
  throw ConfigError(fmt::format(
      "{:?}: the file's name is the graph's, and must be UTF-8 without commas, double quotes and "
      "control characters: rename it",
      file.string()));
}

std::vector<std::filesystem::path> source_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return files;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (!is_source(entry.path())) continue;
      if (entry.is_symlink() && !entry.exists(error))
        throw IoError(fmt::format(
            "{}: a link to a file that is not there ({}): remove it, or "
            "mount what it points to",
            entry.path().string(), std::filesystem::read_symlink(entry.path()).string()));
      if (!entry.is_regular_file()) continue;
      require_usable_name(entry.path());
      files.push_back(entry.path());
    }
  } catch (const std::filesystem::filesystem_error& e) {
    throw IoError(fmt::format("cannot list {}: {}", folder.string(), e.code().message()));
  }
  std::ranges::sort(files);
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i - 1].stem() == files[i].stem())
      throw ConfigError(fmt::format("{} and {} would be the same graph: remove one of them",
                                    files[i - 1].string(), files[i].filename().string()));
  }
  return files;
}

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

std::vector<PlannedShard> plan_shards(const std::filesystem::path& npz_root,
                                      const Collection& collection) {
  const std::size_t graphs_per_shard = collection.is_tile() ? 64 : 1;
  std::vector<PlannedShard> plan;
  for (const std::string_view split : kSplits) {
    const auto files =
        source_files(std::filesystem::absolute(npz_root) / collection.folder() / split);
    std::size_t number = 0;
    for (std::size_t begin = 0, end; begin < files.size(); begin = end) {
      end = begin + 1;
      while (is_npz(files[begin]) && end < std::min(files.size(), begin + graphs_per_shard) &&
             is_npz(files[end]))
        ++end;
      PlannedShard shard;
      shard.split = split;
      shard.file = fmt::format("{}/shard-{:05}.h5", split, number++);
      shard.sources.assign(files.begin() + static_cast<std::ptrdiff_t>(begin),
                           files.begin() + static_cast<std::ptrdiff_t>(end));
      for (const auto& file : shard.sources) {
        std::error_code gone;
        const std::uintmax_t bytes = std::filesystem::file_size(file, gone);
        if (!gone) shard.source_bytes += bytes;
      }
      plan.push_back(std::move(shard));
    }
  }
  return plan;
}

std::string second_name(const std::string& file) {
  return file.substr(0, file.size() - 3) + "b.h5";
}

bool is_shard_name(std::string_view name) {
  return name.starts_with("shard-") &&
         name.find_first_not_of("0123456789b", 6) == name.find(".h5") &&
         (name.ends_with(".h5") || name.ends_with(".tmp"));
}

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
