#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

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
