#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// Collections that are trained and scored on together are one, whose name joins theirs by '+'. A graph
// may be in several of them, so its name there is its id, e.g. "layout:xla:random:bert".

// The collection of this name, or of several, in whatever order. Throws ConfigError where a name is
// none, stands twice, or layouts and tiles are mixed, or there is no name.
Collection merged_collection(const std::vector<std::string>& names);

// The name of that collection; the names are not checked.
std::string joined_name(std::vector<std::string> names);

bool is_joined(const Collection& collection);

// The collections that are joined, sorted by name; of any other one itself.
std::vector<Collection> parts_of(const Collection& collection);

// Members of equal collections are combined, and results on collections that have none in common stand
// side by side. `scored`: runs or files, and what members of each score. Throws ConfigError where two
// have a collection in common and are not equal.
void refuse_overlaps(const std::vector<std::pair<std::string, Collection>>& scored);

// The collection that an id begins with; empty when it is none, or no graph's name follows.
std::string_view collection_of_id(std::string_view id);

// The graph's name in an id, "bert" above; any other name as it is.
std::string_view graph_of_id(std::string_view id);

// Whether one of the patterns fits the graph's name in an id, or, if it has a colon, the whole id: so
// "x*" is about graphs and not about collections.
bool fits_graph(const std::vector<std::string>& patterns, std::string_view id);

}  // namespace tpudist
