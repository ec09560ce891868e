#include "data/shards/converted_collections.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/process.hpp"
#include "data/schema/collection_folders.hpp"
#include "data/schema/merged_collection.hpp"
#include "data/shards/manifest.hpp"

namespace tpudist {
namespace {

bool is_converted(const std::filesystem::path& shard_root, const Collection& collection) {
  std::error_code error;
  return std::filesystem::exists(shard_root / collection.folder() / kManifestName, error);
}

}  // namespace

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
