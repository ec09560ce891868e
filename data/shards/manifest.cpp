#include "data/shards/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/process.hpp"
#include "core/version.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kFormat = "tpudist-manifest";
constexpr int kVersion = 1;
constexpr const char* kHashKey = "xxh3";

// Describes the fields once for both directions: `field(json key, member)`.
template <typename Graph, typename Field>
void graph_fields(Graph& graph, const Field& field) {
  field("name", graph.name);
  field("group", graph.group);
  field("source", graph.source.path);
  field("source_bytes", graph.source.bytes);
  field("nodes", graph.nodes);
  field("edges", graph.edges);
  field("configs", graph.configs);
  field("config_nodes", graph.config_nodes);
  field("distinct_configs", graph.distinct_configs);
  field("coded", graph.coded);
  field("config_type", graph.config_type);
  field("states", graph.states);
  field("max_states_per_node", graph.max_states_per_node);
  field("float_bytes", graph.float_bytes);
  field("memory_bytes", graph.memory_bytes);
  field("stored_bytes", graph.stored_bytes);
}

Json to_json(const GraphSummary& graph) {
  Json json;
  graph_fields(graph, [&](const char* key, const auto& value) { json[key] = value; });
  json["source_xxh3"] = to_hex(graph.source.hash);
  return json;
}

std::uint64_t hash_of(const Json& json, const char* key) {
  const auto text = json.at(key).get<std::string>();
  const std::optional<std::uint64_t> hash = from_hex(text);
  if (!hash) throw std::invalid_argument(fmt::format("{} is '{}', not a hash", key, text));
  return *hash;
}

GraphSummary graph_of(const Json& json, const FeatureSchema& schema) {
  GraphSummary graph;
  graph.schema = schema;
  graph_fields(graph, [&](const char* key, auto& value) { read_field(json, key, value); });
  graph.source.hash = hash_of(json, "source_xxh3");
  return graph;
}

Json to_json(const FeatureSchema& schema) {
  Json json;
  schema_fields(schema, [&]<typename T>(const char* key, const T& value) {
    if constexpr (std::is_same_v<T, ColumnRange>)
      json[key] = to_text(value);
    else
      json[key] = value;
  });
  return json;
}

FeatureSchema schema_of(const Json& json, const Collection& collection) {
  FeatureSchema schema = Collection{collection.name}.schema;
  schema_fields(schema, [&]<typename T>(const char* key, T& value) {
    if constexpr (!std::is_same_v<T, ColumnRange>)
      json.at(key).get_to(value);
    else if (!parse_columns(json.at(key).get<std::string>(), kMostNodeFeatures, value))
      throw std::invalid_argument(fmt::format("{} is no range of columns", key));
  });
  if (const std::string fault = fault_of(schema); !fault.empty())
    throw std::invalid_argument(fault);
  return schema;
}

Json to_json(const Manifest::Shard& shard) {
  Json json = {{"file", shard.file},
               {"split", shard.split},
               {"bytes", shard.bytes},
               {"xxh3", to_hex(shard.hash)},
               {"graphs", Json::array()}};
  for (const GraphSummary& graph : shard.graphs) json["graphs"].push_back(to_json(graph));
  return json;
}

Manifest::Shard shard_of(const Json& json, const FeatureSchema& schema) {
  Manifest::Shard shard;
  read_field(json, "file", shard.file);
  read_field(json, "split", shard.split);
  read_field(json, "bytes", shard.bytes);
  shard.hash = hash_of(json, "xxh3");
  for (const Json& graph : json.at("graphs")) shard.graphs.push_back(graph_of(graph, schema));
  return shard;
}

// Totals, for people who read the file.
Json counts(const Manifest& manifest) {
  Json json;
  for (const std::string_view split : kSplits) {
    std::int64_t graphs = 0, configs = 0;
    for (const Manifest::Shard& shard : manifest.shards) {
      if (shard.split != split) continue;
      graphs += std::ssize(shard.graphs);
      for (const GraphSummary& graph : shard.graphs) configs += graph.configs;
    }
    json[std::string(split)] = {{"graphs", graphs}, {"configs", configs}};
  }
  return json;
}

// The text as in the file. File names need not be UTF-8.
std::string text_of(const Json& json) {
  return json_text(json, 1) + "\n";
}

// The hash of a manifest without its last member, the hash itself.
std::string hash_of_manifest(const Json& json) {
  Json rest = json;
  rest.erase(kHashKey);
  return to_hex(hash64(text_of(rest)));
}

bool is_converted(const std::filesystem::path& shard_root, const Collection& collection) {
  std::error_code error;
  return std::filesystem::exists(shard_root / collection.folder() / kManifestName, error);
}

}  // namespace

void write_manifest(const Manifest& manifest, const std::filesystem::path& path,
                    FileSystem& files) {
  Json json = {
      {"format", kFormat}, {"version", kVersion}, {"collection", manifest.collection.name}};
  if (const auto& own = manifest.collection; own.schema != Collection{own.name}.schema)
    json["schema"] = to_json(own.schema);
  json.update({{"created_by", "tpudist " + std::string(version())},
               {"counts", counts(manifest)},
               {"skipped", Json::array()},
               {"shards", Json::array()}});
  for (const Manifest::Skipped& file : manifest.skipped) {
    json["skipped"].push_back({{"source", file.source}, {"error", file.error}});
  }
  for (const Manifest::Shard& shard : manifest.shards) json["shards"].push_back(to_json(shard));
  json[kHashKey] = hash_of_manifest(json);
  write_file_atomically(path, text_of(json), files);
}

Manifest read_manifest(const std::filesystem::path& path, const Collection& collection) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    if (error == std::errc::permission_denied)
      throw IoError(fmt::format("cannot look at {}: {}", path.string(), error.message()));
    throw DataError(fmt::format("{} is missing: {} has not been converted (tpudist convert)",
                                path.string(), collection.name));
  }
  try {
    const std::string text = read_text_file(path);
    if (json_depth(text) > kDeepestJson)
      throw std::invalid_argument(fmt::format("more than {} brackets within", kDeepestJson));
    const Json json = Json::parse(text);
    if (json.at("format") != kFormat || json.at("version") != kVersion ||
        json.at("collection") != collection.name) {
      throw DataError(fmt::format("{}: is not a manifest (version {}) of {}; convert again",
                                  path.string(), kVersion, collection.name));
    }
    Manifest manifest{Collection{collection.name}, {}, {}};
    if (json.contains("schema")) manifest.collection.schema = schema_of(json["schema"], collection);
    for (const Json& shard : json.at("shards")) {
      manifest.shards.push_back(shard_of(shard, manifest.collection.schema));
      for (const GraphSummary& graph : manifest.shards.back().graphs)
        require_possible(graph, fmt::format("{}: graph {}", path.string(), graph.name));
    }
    for (const Json& file : json.at("skipped")) {
      manifest.skipped.push_back({file.at("source"), file.at("error")});
    }
    if (json.at(kHashKey) != hash_of_manifest(json))
      throw DataError(path.string() +
                      ": was changed or is damaged, by its own hash; convert again");
    return manifest;
  } catch (const Json::exception& e) {
    throw DataError(fmt::format("{}: is not a manifest ({}); convert again", path.string(),
                                json_fault(e.what())));
  } catch (const std::invalid_argument& e) {  // see read_field, hash_of, schema_of, json_depth
    throw DataError(
        fmt::format("{}: is not a manifest ({}); convert again", path.string(), e.what()));
  }
}

namespace {

[[noreturn]] void fail_difference(std::string_view where, std::string_view field,
                                  const Json& listed, const Json& found) {
  const auto text = [](const Json& value) { return json_text(value); };
  throw DataError(fmt::format("{}: {} is {} in the manifest, but {} in the shard; convert again",
                              where, field, text(listed), text(found)));
}

// Values as read back from a file, which replaces text that is not UTF-8.
Json written(const Json& json) {
  return Json::parse(json_text(json));
}

}  // namespace

void require_equal(const Manifest::Shard& listed, const ShardSummary& found,
                   const Collection& collection, std::string_view where) {
  if (found.collection != collection.name) {
    fail_difference(where, "collection", collection.name, found.collection);
  }
  if (found.schema != collection.schema) {
    fail_difference(where, "the schema", to_text(collection.schema), to_text(found.schema));
  }
  if (found.split != listed.split) fail_difference(where, "split", listed.split, found.split);
  if (found.graphs.size() != listed.graphs.size()) {
    fail_difference(where, "number of graphs", listed.graphs.size(), found.graphs.size());
  }
}

void require_equal(const GraphSummary& listed, const GraphSummary& found, std::string_view where) {
  const Json a = written(to_json(listed)), b = written(to_json(found));
  for (const auto& [key, value] : a.items()) {
    if (value != b.at(key)) fail_difference(where, key, value, b.at(key));
  }
}

std::vector<std::string> manifest_faults(const std::filesystem::path& path,
                                         const Manifest& manifest) {
  std::vector<std::string> faults;
  const auto fault = [&](const std::string& what) {
    faults.push_back(fmt::format("{}: {}; convert again", path.string(), what));
  };
  const Json json = Json::parse(read_text_file(path), nullptr, false);
  if (!json.is_object() || !json.contains("counts") || json["counts"] != counts(manifest)) {
    fault("counts are not the sums of the graphs listed");
  }
  std::set<std::pair<std::string, std::string>> graphs;
  std::set<std::string> files;
  for (const Manifest::Shard& shard : manifest.shards) {
    if (std::ranges::find(kSplits, shard.split) == std::end(kSplits)) {
      fault(fmt::format("shard {} has the split '{}'", shard.file, shard.split));
    }
    const std::filesystem::path file = shard.file;
    if (file.parent_path() != shard.split || !file.has_filename() || file.filename() == "..") {
      fault(fmt::format("shard {} is not in the folder {}", shard.file, shard.split));
    }
    if (!files.insert(shard.file).second) fault("lists " + shard.file + " twice");
    for (const GraphSummary& graph : shard.graphs) {
      if (graphs.emplace(shard.split, graph.name).second) continue;
      fault(fmt::format("lists two graphs of the name {} in {}", graph.name, shard.split));
    }
  }
  const auto place = [](const Manifest::Shard& shard) {
    return std::pair(std::ranges::find(kSplits, shard.split) - std::begin(kSplits), shard.file);
  };
  if (!std::ranges::is_sorted(manifest.shards, {}, place)) fault("shards are out of order");
  return faults;
}

void check_shard_present(const std::filesystem::path& folder, const Manifest::Shard& shard) {
  std::error_code error;
  const std::filesystem::path path = folder / shard.file;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error == std::errc::permission_denied)
    throw IoError(fmt::format("cannot look at {}: {}", path.string(), error.message()));
  if (error) {
    throw DataError(
        fmt::format("{} is missing, but the manifest lists it; convert again", path.string()));
  }
  if (bytes != shard.bytes) {
    throw DataError(fmt::format("{} has {} bytes, but the manifest says {}; convert again",
                                path.string(), bytes, shard.bytes));
  }
}

Collection with_schema(const std::filesystem::path& shard_root, Collection collection) {
  if (collection.is_tpugraphs()) return collection;
  if (is_joined(collection)) {
    collection.schema = with_schema(shard_root, parts_of(collection).front()).schema;
    return collection;
  }
  try {
    return read_manifest(shard_root / collection.folder() / kManifestName, collection).collection;
  } catch (const Error&) {
    return collection;
  }
}

void require_any_shards(const std::filesystem::path& folder) {
  if (!converted_collections(folder).empty()) return;
  const auto named = [](const std::filesystem::path& file) {
    return file.filename() == kManifestName;
  };
  if (const auto root = root_with(folder, named); !root.empty()) {
    throw ConfigError(fmt::format("{}: holds no collections itself; give {}, which does",
                                  folder.string(), root.string()));
  }
  if (const auto root = root_with(folder, is_npz); !root.empty()) {
    throw ConfigError(fmt::format(
        "{}: holds raw NPZ files and no shards; run `tpudist convert {} SHARDS` once, and "
        "give the folder SHARDS that it makes",
        folder.string(), shell_word(root.string())));
  }
  throw ConfigError(fmt::format(
      "{}: holds no converted collection; `tpudist convert NPZ SHARDS` makes shards of NPZ "
      "files",
      folder.string()));
}

std::vector<Collection> converted_collections(const std::filesystem::path& shard_root) {
  std::vector<Collection> found = find_collections(shard_root, [&](const Collection& collection) {
    return is_converted(shard_root, collection);
  });
  for (Collection& collection : found) collection = with_schema(shard_root, std::move(collection));
  return found;
}

void require_shards(const std::filesystem::path& shard_root, const Collection& collection,
                    std::string_view advice) {
  if (is_joined(collection)) {
    for (const Collection& part : parts_of(collection)) require_shards(shard_root, part, advice);
    return;
  }
  if (is_converted(shard_root, collection)) return;
  std::error_code error;
  if (!std::filesystem::is_directory(shard_root, error)) {
    throw ConfigError(fmt::format(
        "{}: there is no such folder of shards{}; {}", shard_root.string(),
        near_path(shard_root, [&](const auto& entry) { return entry.is_directory(error); }),
        advice));
  }
  require_any_shards(shard_root);
  throw ConfigError(
      fmt::format("{}: holds no shards of {}{}; {}", shard_root.string(), collection.name,
                  what_is_there(collection.name, converted_collections(shard_root)), advice));
}

}  // namespace tpudist
