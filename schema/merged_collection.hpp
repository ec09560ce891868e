#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schema/collection.hpp"

namespace tpudist {

// Collections that are trained and scored on together are one, whose name joins theirs by '+'. A graph
// may be in several of them, so its name there is its id, e.g. "layout:xla:random:bert".

// The collection of this name, or of several. Throws ConfigError where a name is none, stands twice,
// or layouts and tiles are mixed, or there is no name.
Collection merged_collection(const std::vector<std::string>& names);

// The collections that are joined, in their order; of any other one itself.
std::vector<Collection> parts_of(const Collection& collection);

// The collection that an id begins with; empty when it is none, or no graph's name follows.
std::string_view collection_of_id(std::string_view id);

// The graph's name in an id, "bert" above; any other name as it is.
std::string_view graph_of_id(std::string_view id);

// Whether one of the patterns fits an id or the graph's name in it.
bool fits_graph(const std::vector<std::string>& patterns, std::string_view id);

}  // namespace tpudist
