#include "data/convert/folder_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "data/convert/conversion_plan.hpp"
#include "data/convert/source_npz.hpp"
#include "data/convert/source_schema.hpp"
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

// Warns of the entries that are not read, in one line those that resemble one of `names`.
void warn_of_entries(const fs::path& folder, std::string_view rule,
                     const std::vector<std::string>& names,
                     const std::function<bool(const fs::directory_entry&)>& is_read) {
  std::map<std::string, std::vector<std::string>> unread;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (is_read(entry) || (name[0] == '.' && !name.starts_with("._"))) continue;
    std::string lower = name;
    std::ranges::transform(name, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto part = std::ranges::find_if(
        names, [&](const std::string& own) { return lower.find(own) != std::string::npos; });
    unread[part == names.end() ? nearest_of(lower, names) : *part].push_back(name);
  }
  for (auto& [meant, files] : unread) {
    std::ranges::sort(files);
    spdlog::warn("{}{} passed over: {}{}", (folder / files[0]).string(),
                 files.size() == 1 ? " is" : fmt::format(" and {} more are", files.size() - 1),
                 rule, meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
  }
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
  std::set<std::string> earlier;
  for (const GraphSummary& graph : present_graphs(folder, collection))
    earlier.insert(graph.source.path);
  std::vector<std::string> gone;
  std::ranges::set_difference(earlier, planned_sources(options.npz_root, collection),
                              std::back_inserter(gone));
  if (gone.empty()) return;
  const std::string what =
      fmt::format("{}: {} of {} sources, such as {}, are not in {}; ", folder.string(), gone.size(),
                  earlier.size(), gone[0], options.npz_root.string());
  if (options.replace) return spdlog::warn("{}their graphs go (--replace)", what);
  throw ConfigError(what +
                    "put them there, take another folder, or let their graphs go (--replace)");
}

void warn_of_unread(const fs::path& npz_root) {
  std::error_code none;
  const std::vector<std::string> names = {"train", "valid", "test", std::string(kSchemaName)};
  for (const Collection& any : find_collections(npz_root, [](const auto&) { return true; })) {
    const fs::path folder = npz_root / any.folder();
    warn_of_entries(folder, "graphs lie in train, valid and test", names, [&](const auto& entry) {
      const std::string name = entry.path().filename().string();
      const bool is_folder = entry.is_directory(none);
      return name == "synth.json" ||
             (std::ranges::count(names, name) > 0 && is_folder == (name != kSchemaName));
    });
    for (const std::string_view split : kSplits)
      warn_of_entries(folder / split, "graphs are NAME.npz or NAME.pb, not ._NAME", {},
                      [&](const auto& entry) {
                        return entry.is_regular_file(none) && is_source(entry.path());
                      });
  }
  for (const fs::path& folder : misnamed_folders(npz_root)) {
    spdlog::warn(
        "{} is passed over: collections are layout/X/Y and tile/X, with X and Y made of letters, "
        "digits, '_' and '-'; rename it",
        (npz_root / folder).string());
  }
}

}  // namespace tpudist
