#include "data/shards/converted_collections.hpp"

#include <fmt/format.h>

#include <system_error>

#include "core/error.hpp"
#include "data/schema/collection_folders.hpp"
#include "data/shards/manifest.hpp"

namespace tpudist {
namespace {

bool is_converted(const std::filesystem::path& shard_root, const Collection& collection) {
  std::error_code error;
  return std::filesystem::exists(shard_root / collection.folder() / kManifestName, error);
}

}  // namespace

std::vector<Collection> converted_collections(const std::filesystem::path& shard_root) {
  return find_collections(shard_root, [&](const Collection& collection) {
    return is_converted(shard_root, collection);
  });
}

void require_shards(const std::filesystem::path& shard_root, const Collection& collection,
                    std::string_view advice) {
  if (is_converted(shard_root, collection)) return;
  std::error_code error;
  if (!std::filesystem::is_directory(shard_root, error)) {
    throw ConfigError(
        fmt::format("{}: there is no such folder of shards; {}", shard_root.string(), advice));
  }
  throw ConfigError(
      fmt::format("{}: holds no shards of {}{}; {}", shard_root.string(), collection.name,
                  what_is_there(collection.name, converted_collections(shard_root)), advice));
}

}  // namespace tpudist
