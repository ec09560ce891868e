#include "data/shards/manifest.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/version.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kFormat = "tpudist-manifest";
constexpr int kVersion = 1;

// One description of the fields for both directions: `field(json key, member)`.
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

GraphSummary graph_of(const Json& json) {
  GraphSummary graph;
  graph_fields(graph, [&](const char* key, auto& value) { json.at(key).get_to(value); });
  graph.source.hash = hash_of(json, "source_xxh3");
  return graph;
}

Json to_json(const ManifestShard& shard) {
  Json json = {{"file", shard.file},
               {"split", shard.split},
               {"bytes", shard.bytes},
               {"xxh3", to_hex(shard.hash)},
               {"graphs", Json::array()}};
  for (const GraphSummary& graph : shard.graphs) json["graphs"].push_back(to_json(graph));
  return json;
}

ManifestShard shard_of(const Json& json) {
  ManifestShard shard;
  json.at("file").get_to(shard.file);
  json.at("split").get_to(shard.split);
  json.at("bytes").get_to(shard.bytes);
  shard.hash = hash_of(json, "xxh3");
  for (const Json& graph : json.at("graphs")) shard.graphs.push_back(graph_of(graph));
  return shard;
}

// Totals for a person who looks into the file.
Json counts(const Manifest& manifest) {
  Json json;
  for (const std::string_view split : kSplits) {
    std::int64_t graphs = 0, configs = 0;
    for (const ManifestShard& shard : manifest.shards) {
      if (shard.split != split) continue;
      graphs += static_cast<std::int64_t>(shard.graphs.size());
      for (const GraphSummary& graph : shard.graphs) configs += graph.configs;
    }
    json[std::string(split)] = {{"graphs", graphs}, {"configs", configs}};
  }
  return json;
}

}  // namespace

void write_manifest(const Manifest& manifest, const std::filesystem::path& path,
                    FileSystem& files) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"collection", manifest.collection.name},
               {"created_by", "tpudist " + std::string(version())},
               {"counts", counts(manifest)},
               {"skipped", Json::array()},
               {"shards", Json::array()}};
  for (const SkippedFile& file : manifest.skipped) {
    json["skipped"].push_back({{"source", file.source}, {"error", file.error}});
  }
  for (const ManifestShard& shard : manifest.shards) json["shards"].push_back(to_json(shard));
  // File names need not be UTF-8.
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  write_file_atomically(path, text, files);
}

Manifest read_manifest(const std::filesystem::path& path, const Collection& collection) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw DataError(fmt::format("{} is missing: {} has not been converted (tpudist convert)",
                                path.string(), collection.name));
  }
  try {
    const Json json = Json::parse(read_text_file(path));
    if (json.at("format") != kFormat || json.at("version") != kVersion ||
        json.at("collection") != collection.name) {
      throw DataError(fmt::format("{}: is not a manifest (version {}) of {}; convert again",
                                  path.string(), kVersion, collection.name));
    }
    Manifest manifest{collection, {}, {}};
    for (const Json& shard : json.at("shards")) manifest.shards.push_back(shard_of(shard));
    for (const Json& file : json.at("skipped")) {
      manifest.skipped.push_back({file.at("source"), file.at("error")});
    }
    return manifest;
  } catch (const Json::exception& e) {
    throw DataError(
        fmt::format("{}: is not a manifest ({}); convert again", path.string(), e.what()));
  } catch (const std::invalid_argument& e) {  // see hash_of
    throw DataError(
        fmt::format("{}: is not a manifest ({}); convert again", path.string(), e.what()));
  }
}

void check_shard_present(const std::filesystem::path& folder, const ManifestShard& shard) {
  std::error_code error;
  const std::filesystem::path path = folder / shard.file;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) {
    throw DataError(
        fmt::format("{} is missing, but the manifest lists it; convert again", path.string()));
  }
  if (bytes != shard.bytes) {
    throw DataError(fmt::format("{} has {} bytes, but the manifest says {}; convert again",
                                path.string(), bytes, shard.bytes));
  }
}

}  // namespace tpudist
