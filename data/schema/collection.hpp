#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/schema/feature_schema.hpp"

namespace tpudist {

// Graphs of one kind that are trained and scored together: "layout:X:Y" or "tile:X", where X and Y
// consist of letters (case matters), digits, '_' and '-'. TpuGraphs' five have the competition's
// names: "tile:xla", "layout:xla:default", "layout:xla:random", "layout:nlp:default",
// "layout:nlp:random". Any other name is the user's own data.
struct Collection {
  std::string name;
  // TpuGraphs', unless read with the graphs (with_schema, Manifest).
  FeatureSchema schema = name.starts_with("tile:") ? kTileSchema : kLayoutSchema;

  bool is_tile() const;
  // Relative folder in the NPZ root and in the shard root, e.g. "layout/xla/random" or "tile/xla".
  std::filesystem::path folder() const;
  // Whether this is one of TpuGraphs' five, which always have the data set's schema.
  bool is_tpugraphs() const;

  // Throws ConfigError, with the nearest of TpuGraphs' names, if `name` has neither form.
  static Collection parse(std::string_view name);
  static bool is_name(std::string_view name);
  static const std::vector<std::string>& tpugraphs_names();
};

inline constexpr std::string_view kSplits[] = {"train", "valid", "test"};

// The collections with a folder below `root` (layout/X/Y or tile/X) for which `holds` is true:
// first those of TpuGraphs in their usual order, then all others by name. Throws IoError if a
// folder cannot be listed; empty if `root` does not exist.
std::vector<Collection> find_collections(const std::filesystem::path& root,
                                         const std::function<bool(const Collection&)>& holds);

// Folders at that depth that cannot be a collection by their names, such as layout/v1.2/x.
std::vector<std::filesystem::path> misnamed_folders(const std::filesystem::path& root);

// Finds the right folder if the user gave a wrong one. Looks for the first file in `folder`, or a
// little below, for which `is_wanted` is true. Returns the folder above that file that holds
// layout/ or tile/, else the file's own folder. Empty if there is no such file.
std::filesystem::path root_with(const std::filesystem::path& folder,
                                const std::function<bool(const std::filesystem::path&)>& is_wanted);

// Whether the file name ends in ".npz".
bool is_npz(const std::filesystem::path& file);

// The end of a message about a missing collection, such as " (did you mean layout:xla:random, which
// is there?)" or " (there are layout:xla:random, tile:xla)": the existing name nearest to `name`,
// else all. Empty if none exists.
std::string what_is_there(const std::string& name, const std::vector<Collection>& there);

// Collections for joint training and scoring form one collection, whose name joins theirs by '+'. A
// graph may be in several of them, so its name there is its id, e.g. "layout:xla:random:bert".

// The collection of one or more names, in any order. Throws ConfigError if there is no name, a name
// is invalid or repeated, or layouts and tiles are mixed.
Collection merged_collection(const std::vector<std::string>& names);

// The name of that collection; the names are not checked.
std::string joined_name(std::vector<std::string> names);

bool is_joined(const Collection& collection);

// The joined collections, sorted by name; for a single collection, the collection itself.
std::vector<Collection> parts_of(const Collection& collection);

// Members of equal collections can be combined, and results on disjoint collections can stand side
// by side. `scored`: runs or files, and the collections that they score. Throws ConfigError if two
// overlap without being equal.
void refuse_overlaps(const std::vector<std::pair<std::string, Collection>>& scored);

// The collection at the start of an id; empty if there is none, or no graph's name follows.
std::string_view collection_of_id(std::string_view id);

// The graph's name in an id, "bert" above; any other name as it is.
std::string_view graph_of_id(std::string_view id);

// Whether a pattern fits the graph's name in an id or, if the pattern has a colon, the whole id. So
// "x*" selects by graph and not by collection.
bool fits_graph(const std::vector<std::string>& patterns, std::string_view id);

}  // namespace tpudist
