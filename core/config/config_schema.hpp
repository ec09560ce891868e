#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config/config.hpp"

namespace tpudist {

// A JSON Schema (draft 7) of the files that `read` reads, so that editors complete and check them.
// To find the keys, `read` gets an empty file, then one file for each word, boolean, number or map
// that a key accepts and that may lead to other keys. `starts`: overrides to begin with, for values
// that no reader lists. `read` may throw ConfigError. The keys of a map in a list depend on the
// map's first choice among words (`layer: gat`). A list inside a list of the same name counts as
// the same list.
std::string config_schema(const std::string& title, const std::vector<std::string>& starts,
                          const std::function<void(ConfigDocument&)>& read);

}  // namespace tpudist
