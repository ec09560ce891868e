#include "data/convert/folder_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "data/convert/conversion_plan.hpp"
#include "data/convert/source_npz.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/manifest.hpp"

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

// "; did you mean train?", for a name that begins like a known one.
std::string meant_by(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string& own : {std::string("train"), std::string("valid"), std::string("test"),
                                 std::string(kSchemaName)}) {
    if (name[0] == own[0] && !nearest_of(name.substr(0, own.size()), {&own, 1}).empty())
      return "; did you mean " + own + "?";
  }
  return "";
}

}  // namespace

std::set<std::string> sources_of(const Manifest& manifest) {
  std::set<std::string> sources;
  for (const Manifest::Shard& shard : manifest.shards) {
    for (const GraphSummary& graph : shard.graphs) sources.insert(graph.source.path);
  }
  return sources;
}

bool lists(const Manifest& manifest, const std::string& shard) {
  return std::ranges::count(manifest.shards, shard, &Manifest::Shard::file) > 0;
}

void require_separate_folders(const ConvertOptions& options,
                              const std::vector<Collection>& collections) {
  if (options.shard_root.empty()) throw ConfigError("the folder of the shards has no name");
  require_separate(options.npz_root, options.shard_root);
  const fs::path shards = real_path(options.shard_root);
  for (fs::path at = shards; at.has_relative_path(); at = at.parent_path()) {
    const std::string name = at.filename().string();
    if ((name == "layout" || name == "tile") && !converted_collections(at.parent_path()).empty())
      throw ConfigError(fmt::format("{} lies within the shards in {}: give that folder",
                                    options.shard_root.string(), at.parent_path().string()));
  }
  for (const Collection& collection : collections) {  // if a part is a symbolic link
    require_separate(options.npz_root / collection.folder(),
                     options.shard_root / collection.folder());
  }
}

Manifest require_own_shards(const ConvertOptions& options, const Collection& collection) {
  const fs::path folder = options.shard_root / collection.folder();
  if (!plan_shards(options.shard_root, collection).empty()) {
    throw ConfigError(
        fmt::format("{} holds NPZ files; give the shards a folder of their own", folder.string()));
  }
  Manifest manifest{collection, {}, {}}, cut_short = manifest;
  try {
    manifest = read_manifest(folder / kManifestName, collection);
  } catch (const DataError&) {  // missing, or unusable
    for (const std::string_view split : kSplits) {
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(folder / split, none)) {
        try {
          if (entry.path().extension() == ".h5")
            cut_short.shards.emplace_back().graphs = summarize_shard(entry.path()).graphs;
        } catch (const Error&) {
        }
      }
    }
  }
  const std::set<std::string> earlier = sources_of(manifest.shards.empty() ? cut_short : manifest);
  std::vector<std::string> gone;
  std::ranges::set_difference(earlier, planned_sources(options.npz_root, collection),
                              std::back_inserter(gone));
  if (gone.empty() || (manifest.shards.empty() && gone.size() < earlier.size())) return manifest;
  const std::string what =
      fmt::format("{}: {} of {} sources, such as {}, are not in {}; ", folder.string(), gone.size(),
                  earlier.size(), gone[0], options.npz_root.string());
  if (!options.replace)
    throw ConfigError(what +
                      "put them there, take another folder, or let their graphs go (--replace)");
  spdlog::warn("{}their graphs go (--replace)", what);
  return manifest;
}

void warn_of_unread(const fs::path& npz_root, const std::vector<Collection>& chosen) {
  std::map<std::string, std::set<std::string>> unread;  // paths, by the message about them
  for (const Collection& any : find_collections(npz_root, [&](const Collection& own) {
         return chosen.empty() || std::ranges::count(chosen, own.name, &Collection::name) > 0;
       })) {
    std::error_code none, gone;
    fs::recursive_directory_iterator at(npz_root / any.folder(),
                                        fs::directory_options::follow_directory_symlink, none);
    for (; !none && at != end(at); at.increment(none)) {
      const fs::path& path = at->path();
      const std::string name = path.filename().string();
      const bool is_split = at->is_directory(gone) && std::ranges::count(kSplits, name) > 0;
      if (!is_split || at.depth() > 0) at.disable_recursion_pending();
      if (name.starts_with(".") && !name.starts_with("._")) continue;
      if (at.depth() > 0) {
        if (!at->is_regular_file(gone) || !is_source(path))
          unread["graphs are NAME.npz or NAME.pb, not ._NAME"].insert(path.string());
      } else if (!is_split && name != kSchemaName && name != "synth.json") {
        unread["graphs lie in train, valid and test" + meant_by(name)].insert(path.string());
      }
    }
  }
  const std::string rule =
      "collections are layout/X/Y and tile/X, with X and Y made of letters, digits, '_' and '-'";
  if (chosen.empty())
    for (const fs::path& folder : misnamed_folders(npz_root))
      unread[rule].insert((npz_root / folder).string());
  for (const auto& [what, paths] : unread)
    spdlog::warn("{}{} passed over: {}", *paths.begin(),
                 paths.size() == 1 ? " is" : fmt::format(" and {} more are", paths.size() - 1),
                 what);
}

}  // namespace tpudist
