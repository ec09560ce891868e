#include "data/convert/folder_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/convert/conversion_plan.hpp"
#include "data/convert/source_npz.hpp"
#include "data/shards/manifest.hpp"
#include "schema/collection_folders.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// True when `inner` is `outer` or lies below it.
bool is_within(const fs::path& inner, const fs::path& outer) {
  const auto [mismatch, rest] = std::ranges::mismatch(outer, inner);
  return mismatch == outer.end();
}

// Without symbolic links and without a trailing slash; the folder need not exist.
fs::path real_path(const fs::path& folder) {
  const fs::path real = fs::weakly_canonical(fs::absolute(folder));
  return real.has_filename() ? real : real.parent_path();
}

void require_separate(const fs::path& sources, const fs::path& shards) {
  const fs::path from = real_path(sources), to = real_path(shards);
  if (!is_within(from, to) && !is_within(to, from)) return;
  throw ConfigError(fmt::format(
      "cannot convert {} to {}: {}; give the shards a folder of their own beside it",
      sources.string(), shards.string(),
      from == to ? "both are one folder" : "one of these folders lies within the other"));
}

// Paths relative to the NPZ root.
std::set<std::string> planned_sources(const fs::path& npz_root, const Collection& collection) {
  const fs::path root = fs::absolute(npz_root);
  std::set<std::string> sources;
  for (const PlannedShard& shard : plan_shards(npz_root, collection)) {
    for (const fs::path& file : shard.sources)
      sources.insert(file.lexically_relative(root).generic_string());
  }
  return sources;
}

// Graphs in shards without a manifest, from an interrupted conversion. Unreadable shards are
// ignored.
std::vector<GraphSummary> graphs_without_manifest(const fs::path& folder) {
  std::vector<GraphSummary> graphs;
  for (const std::string_view split : kSplits) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder / split, none)) {
      if (entry.path().extension() != ".h5") continue;
      try {
        for (GraphSummary& graph : summarize_shard(entry.path()).graphs)
          graphs.push_back(std::move(graph));
      } catch (const Error&) {
      }
    }
  }
  return graphs;
}

std::vector<GraphSummary> present_graphs(const fs::path& folder, const Collection& collection) {
  std::vector<GraphSummary> graphs;
  try {
    for (ManifestShard& shard : read_manifest(folder / kManifestName, collection).shards) {
      for (GraphSummary& graph : shard.graphs) graphs.push_back(std::move(graph));
    }
  } catch (const DataError&) {
    return graphs_without_manifest(folder);
  }
  return graphs;
}

bool holds_npz_files(const fs::path& folder) {
  return std::ranges::any_of(kSplits, [&](std::string_view split) {
    std::error_code none;
    return std::ranges::any_of(fs::directory_iterator(folder / split, none),
                               [](const auto& entry) { return is_source(entry.path()); });
  });
}

}  // namespace

void require_separate_folders(const ConvertOptions& options,
                              const std::vector<Collection>& collections) {
  require_separate(options.npz_root, options.shard_root);
  for (const Collection& collection : collections) {  // where a part is a symbolic link
    require_separate(options.npz_root / collection.folder(),
                     options.shard_root / collection.folder());
  }
}

void require_own_shards(const ConvertOptions& options, const Collection& collection) {
  const fs::path folder = options.shard_root / collection.folder();
  if (!plan_shards(options.shard_root, collection).empty()) {
    throw ConfigError(
        fmt::format("{} holds NPZ files; give the shards a folder of their own", folder.string()));
  }
  if (options.replace) return;
  const std::vector<GraphSummary> present = present_graphs(folder, collection);
  const std::set<std::string> sources = planned_sources(options.npz_root, collection);
  const auto is_known = [&](const GraphSummary& graph) {
    return sources.contains(graph.source.path);
  };
  if (present.empty() || std::ranges::any_of(present, is_known)) return;
  throw ConfigError(fmt::format(
      "{} holds shards of other data: none of their {} sources, such as {}, is in {}; "
      "take another folder, or --replace to replace them",
      folder.string(), present.size(), present.front().source.path, options.npz_root.string()));
}

void warn_of_misnamed_folders(const fs::path& npz_root) {
  for (const fs::path& folder : misnamed_folders(npz_root)) {
    if (!holds_npz_files(npz_root / folder)) continue;
    spdlog::warn(
        "{} is passed over: collections are layout/X/Y and tile/X, with X and Y made of letters, "
        "digits, '_' and '-'; rename it",
        (npz_root / folder).string());
  }
}

}  // namespace tpudist
